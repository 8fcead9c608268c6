"""`fish-slurm check`: the recommended files pass, each deviation is named with its cost."""

import itertools
import re

import pytest

from fish_contracts.priority import WorkClass, may_preempt
from fish_slurm.audit import audit, audit_plugins, parse_config, parse_partitions, parse_qos
from fish_slurm.errors import UnreadableOutput
from fish_slurm.recommendation import SETTINGS, Weight

NAMES = {WorkClass.CLEANING: "clean", WorkClass.TRAINING: "train", WorkClass.INFERENCE: "serve"}
QOS = "Name|Preempt|PreemptMode|GraceTime\nnormal||cluster|00:00:00\ntrain|clean|cluster|00:00:00\nserve|clean|cluster|00:00:00\nclean||requeue|00:00:00\n"


@pytest.fixture(scope="module", params=["22.05.8", "24.11.5"])
def cluster_state(recorded, request):
    """What a trial cluster with the recommended files said; a trial has no cgroups, a production cluster does."""
    config = parse_config((recorded / f"config-{request.param}.txt").read_text())
    partitions = parse_partitions((recorded / f"partitions-{request.param}.txt").read_text())
    return config | {"ProctrackType": "proctrack/cgroup"}, partitions


def test_a_cluster_with_the_recommended_files_has_no_deviation(cluster_state):
    config, partitions = cluster_state
    assert audit(config=config, partitions=partitions, qos={}, names=NAMES) == []


@pytest.mark.parametrize(
    ("name", "value", "weight"),
    [
        ("PreemptType", "preempt/none", Weight.BREAKS),
        ("PreemptMode", "GANG,SUSPEND", Weight.BREAKS),
        ("KillWait", "30 sec", Weight.SLOWS),
        ("JobRequeue", "0", Weight.RISKS),
        ("RequeueExit", "(null)", Weight.RISKS),
        ("JobSubmitPlugins", "(null)", Weight.RISKS),
        ("SchedulerParameters", "batch_sched_delay=0,sched_min_interval=0,defer", Weight.SLOWS),
        ("SchedulerParameters", "batch_sched_delay=0,sched_min_interval=2000000", Weight.SLOWS),
        ("SchedulerParameters", "sched_min_interval=0", Weight.SLOWS),
        ("PreemptExemptTime", "00:10:00", Weight.SLOWS),
    ],
)
def test_a_deviation_is_named_with_what_was_found_and_what_it_costs(cluster_state, name, value, weight):
    config, partitions = cluster_state
    (finding,) = audit(config=config | {name: value}, partitions=partitions, qos={}, names=NAMES)
    assert (finding.where, finding.found, finding.weight) == (name, value, weight)
    assert finding.cost


def test_a_missing_partition_is_named_together_with_those_there_are(cluster_state):
    config, partitions = cluster_state
    names = NAMES | {WorkClass.CLEANING: "fill"}
    (finding,) = audit(config=config, partitions=partitions, qos={}, names=names)
    assert (finding.where, finding.found) == ("partition fill", "none; there are clean, serve, train")


@pytest.mark.parametrize(
    ("partition", "change", "wrong"),
    [
        (
            "clean",
            {"PreemptMode": "OFF"},
            {"training waits for cleaning to end", "inference waits for cleaning to end"},
        ),
        ("train", {"PriorityTier": "200", "PreemptMode": "REQUEUE"}, set()),
        ("train", {"PriorityTier": "50", "PreemptMode": "REQUEUE"}, {"training is stopped by inference"}),
        ("train", {"PriorityTier": "0"}, {"training waits for cleaning to end"}),
    ],
)
def test_partitions_that_contradict_the_rule_are_named(cluster_state, partition, change, wrong):
    config, partitions = cluster_state
    changed = partitions | {partition: partitions[partition] | change}
    assert {finding.cost for finding in audit(config=config, partitions=changed, qos={}, names=NAMES)} == wrong


def test_a_grace_time_is_named(cluster_state):
    config, partitions = cluster_state
    changed = partitions | {"clean": partitions["clean"] | {"GraceTime": "10"}}
    (finding,) = audit(config=config, partitions=changed, qos={}, names=NAMES)
    assert finding.where == "partition clean GraceTime"


def test_with_qos_the_preempt_lists_decide(cluster_state):
    config, partitions = cluster_state
    config = config | {"PreemptType": "preempt/qos"}
    assert audit(config=config, partitions=partitions, qos=parse_qos(QOS), names=NAMES) == []
    wrong = parse_qos(QOS.replace("serve|clean|", "serve|train|"))
    costs = {finding.cost for finding in audit(config=config, partitions=partitions, qos=wrong, names=NAMES)}
    assert costs == {"inference waits for cleaning to end", "training is stopped by inference"}


def test_a_required_spank_plugin_is_named_and_an_optional_one_is_not():
    (finding,) = audit_plugins("required /usr/lib/slurm-fish/fish_spank.so budget_s=10\nrequired /x/other.so\n")
    assert finding.wanted == "optional /usr/lib/slurm-fish/fish_spank.so budget_s=10"
    assert audit_plugins("optional /usr/lib/slurm-fish/fish_spank.so\n# required fish_spank.so\n") == []


@pytest.mark.parametrize("parse", [parse_config, parse_partitions])
def test_output_of_another_shape_is_an_error(parse):
    with pytest.raises(UnreadableOutput, match="expected"):
        parse("slurm_load_ctl_conf error: Unable to contact slurm controller\n")


def test_the_files_of_conf_hold_every_recommended_setting(slurm_folder):
    text = "".join(path.read_text() for path in (slurm_folder / "conf").glob("fish-*.conf"))
    lines = re.findall(r"^(\w+)=(.*)$", text, flags=re.MULTILINE)
    for setting in SETTINGS:
        values = [value for name, value in lines if name == setting.name]
        assert all(setting.holds(value) for value in values), setting
        assert values or setting.name == "PreemptExemptTime", setting  # 0 by default


def test_the_qos_script_is_the_rule(slurm_folder):
    script = (slurm_folder / "conf/fish-qos.sh").read_text()
    lists = dict(re.findall(r"modify qos (\w+) set .*Preempt=(\S+)", script))
    for claimant, holder in itertools.product(WorkClass, WorkClass):
        assert (NAMES[holder] in lists.get(NAMES[claimant], "").split(",")) == may_preempt(claimant, holder)
