"""Compares a running cluster with the rule and the recommended settings (pure)."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fish_contracts.priority import WorkClass, may_preempt
from fish_slurm.errors import UnreadableOutput
from fish_slurm.recommendation import SETTINGS, Weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One deviation."""

    where: str
    found: str
    wanted: str
    weight: Weight
    cost: str


def audit(
    *,
    config: Mapping[str, str],
    partitions: Mapping[str, Mapping[str, str]],
    qos: Mapping[str, Mapping[str, str]],
    names: Mapping[WorkClass, str],
) -> list[Finding]:
    """Return what keeps this cluster from the rule; `names` says which partition, and QOS, each class of work has."""
    findings = list(_settings(config))
    missing = [name for name in names.values() if name not in partitions]
    findings += [_missing("partition", name, sorted(partitions)) for name in missing]
    present = {work_class: name for work_class, name in names.items() if name not in missing}
    if WorkClass.CLEANING in present:
        findings += _grace(present[WorkClass.CLEANING], partitions)
    if config.get("PreemptType") == "preempt/qos":
        findings += _qos_rule(qos, names)
    else:
        findings += _tier_rule(partitions, present)
    return findings


def audit_plugins(plugstack: str) -> list[Finding]:
    """Return what is wrong with how plugstack.conf names our SPANK plugin."""
    lines = [line.split() for line in plugstack.splitlines() if "fish_spank" in line]
    return [
        Finding(
            where="plugstack.conf",
            found=" ".join(words),
            wanted=f"optional {' '.join(words[1:])}",
            weight=Weight.RISKS,
            cost="after an upgrade of Slurm the old plugin stops every sbatch and every slurmd of the cluster",
        )
        for words in lines
        if words[0] == "required"
    ]


def parse_config(text: str) -> dict[str, str]:
    """Return `scontrol show config` as a mapping."""
    pairs = re.findall(r"^(\w+)\s+= (.*?)\s*$", text, flags=re.MULTILINE)
    if not pairs:
        raise UnreadableOutput(f"scontrol show config printed {text[:80]!r}, expected lines of NAME = VALUE")
    return dict(pairs)


def parse_partitions(text: str) -> dict[str, dict[str, str]]:
    """Return `scontrol -o show partition` by name."""
    rows = [dict(word.partition("=")[::2] for word in line.split()) for line in text.splitlines() if line.strip()]
    if any("PartitionName" not in row for row in rows):
        raise UnreadableOutput(f"scontrol show partition printed {text[:80]!r}, expected PartitionName=… in each line")
    return {row["PartitionName"]: row for row in rows}


def parse_qos(text: str) -> dict[str, dict[str, str]]:
    """Return `sacctmgr --parsable2 show qos format=name,preempt,preemptmode,gracetime` by name."""
    lines = [line.split("|") for line in text.splitlines() if line.strip()]
    return {row[0]: dict(zip(lines[0], row, strict=True)) for row in lines[1:]} if lines else {}


def _settings(config: Mapping[str, str]) -> Iterator[Finding]:
    for setting in SETTINGS:
        found = config.get(setting.name, "not shown by this Slurm")
        if not setting.holds(found):
            yield Finding(
                where=setting.name, found=found, wanted=setting.wanted, weight=setting.weight, cost=setting.cost
            )


def _missing(kind: str, name: str, there: Sequence[str]) -> Finding:
    return Finding(
        where=f"{kind} {name}",
        found=f"none; there are {', '.join(there) or 'no others'}",
        wanted=f"a {kind} named {name}, or its name given on the command line",
        weight=Weight.BREAKS,
        cost="its work cannot be told from other work",
    )


def _grace(cleaning: str, partitions: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    found = partitions[cleaning].get("GraceTime", "0")
    if found != "0":
        yield Finding(
            where=f"partition {cleaning} GraceTime",
            found=found,
            wanted="0",
            weight=Weight.SLOWS,
            cost="a batch job is told only when time limits are looked at: training waited 24-26 s with 10",
        )


def _tier_rule(partitions: Mapping[str, Mapping[str, str]], names: Mapping[WorkClass, str]) -> Iterator[Finding]:
    for claimant, claimant_name in names.items():
        for holder, holder_name in names.items():
            over = partitions[holder_name]
            takes = int(partitions[claimant_name]["PriorityTier"]) > int(over["PriorityTier"])
            yields = over["PreemptMode"] != "OFF"
            if claimant is not holder and (takes and yields) != may_preempt(claimant, holder):
                yield _contradiction(
                    claimant,
                    holder,
                    where=f"partitions {claimant_name} and {holder_name}",
                    found=f"PriorityTier {partitions[claimant_name]['PriorityTier']} over {over['PriorityTier']}, "
                    f"{holder_name} PreemptMode {over['PreemptMode']}",
                )


def _qos_rule(qos: Mapping[str, Mapping[str, str]], names: Mapping[WorkClass, str]) -> Iterator[Finding]:
    for claimant, claimant_name in names.items():
        if claimant_name not in qos:
            yield _missing("QOS", claimant_name, sorted(qos))
            continue
        listed = qos[claimant_name].get("Preempt", "").split(",")
        for holder, holder_name in names.items():
            if claimant is not holder and (holder_name in listed) != may_preempt(claimant, holder):
                yield _contradiction(
                    claimant, holder, where=f"QOS {claimant_name}", found=f"Preempt={','.join(listed) or 'nothing'}"
                )


def _contradiction(claimant: WorkClass, holder: WorkClass, *, where: str, found: str) -> Finding:
    may = may_preempt(claimant, holder)
    return Finding(
        where=where,
        found=found,
        wanted=f"{claimant} {'takes' if may else 'never takes'} GPUs from {holder}",
        weight=Weight.BREAKS,
        cost=f"{claimant} waits for {holder} to end" if may else f"{holder} is stopped by {claimant}",
    )
