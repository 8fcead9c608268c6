"""The files of a trial cluster as text (pure). The policy is not here: it is included from conf/, as a site would."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

Mode: TypeAlias = Literal["partition", "qos"]

POLICY_FILES: Final[dict[Mode, tuple[str, ...]]] = {
    "partition": ("fish-scheduling.conf", "fish-partitions.conf"),
    "qos": ("fish-scheduling.conf", "fish-qos.conf"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """What to start and where. `ports` has one for slurmctld, one a node and, in QOS mode, two for the database."""

    root: Path
    conf: Path
    host: str
    ports: tuple[int, ...]
    nodes: int = 2
    gpus_per_node: int = 4
    cores_per_node: int = 8
    mode: Mode = "partition"
    settings: tuple[str, ...] = field(default=())
    """Lines put before the policy. Slurm takes the last of two lines, so these add and never override."""

    def __post_init__(self) -> None:
        """Refuse a plan whose ports do not suffice."""
        needed = self.nodes + (3 if self.mode == "qos" else 1)
        if len(self.ports) < needed:
            raise ValueError(f"{self.nodes} nodes in {self.mode} mode need {needed} ports, found {len(self.ports)}")

    @property
    def etc(self) -> Path:
        """The folder of slurm.conf."""
        return self.root / "etc"

    @property
    def munge_socket(self) -> Path:
        """Where this cluster's own munged listens."""
        return self.root / "munge/run/munge.socket"

    def node_names(self) -> list[str]:
        """Return n1, n2, …"""
        return [f"n{number + 1}" for number in range(self.nodes)]


def slurm_conf(plan: TrialPlan) -> str:
    """Return the site's half of slurm.conf: names, ports, folders, nodes; then the includes of the policy."""
    root = plan.root
    lines = [
        "ClusterName=fish-trial",
        f"SlurmctldHost={plan.host}(127.0.0.1)",
        f"SlurmctldPort={plan.ports[0]}",
        "SlurmUser=slurm",
        "AuthType=auth/munge",
        f"AuthInfo=socket={plan.munge_socket}",
        "CredType=cred/munge",
        f"StateSaveLocation={root}/state",
        f"SlurmdSpoolDir={root}/spool/%n",
        f"SlurmctldPidFile={root}/run/slurmctld.pid",
        f"SlurmdPidFile={root}/run/slurmd-%n.pid",
        f"SlurmctldLogFile={root}/log/slurmctld.log",
        f"SlurmdLogFile={root}/log/slurmd-%n.log",
        "ReturnToService=2",
        "SlurmdParameters=config_overrides",  # the host's two cores pose as many
        "ProctrackType=proctrack/linuxproc",  # a trial has no cgroup of its own; production does: fish-containment.conf
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "MpiDefault=none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "SchedulerType=sched/backfill",
        "GresTypes=gpu",
        "DefMemPerCPU=500",  # without it one job takes all memory of its node, and with it the node
        *_accounting(plan),
        *plan.settings,
        *_nodes(plan),
        *(f"include {plan.conf / name}" for name in POLICY_FILES[plan.mode]),
    ]
    return "\n".join(lines) + "\n"


def gres_conf(plan: TrialPlan) -> str:
    """Return gres.conf: one character device a fake GPU. A plain file would leave CUDA_VISIBLE_DEVICES unset."""
    last = plan.gpus_per_node - 1
    lines = ["AutoDetect=off"]
    for name in plan.node_names():
        lines.append(f"NodeName={name} Name=gpu Type=fake File={plan.root}/dev/{name}/nvidia[0-{last}]")
    return "\n".join(lines) + "\n"


def slurmdbd_conf(plan: TrialPlan) -> str:
    """Return slurmdbd.conf for QOS mode."""
    database_port, dbd_port = plan.ports[-1], plan.ports[-2]
    lines = [
        "AuthType=auth/munge",
        f"AuthInfo={plan.munge_socket}",
        "DbdHost=localhost",
        "DbdAddr=127.0.0.1",
        f"DbdPort={dbd_port}",
        "SlurmUser=slurm",
        f"LogFile={plan.root}/log/slurmdbd.log",
        f"PidFile={plan.root}/run/slurmdbd.pid",
        "StorageType=accounting_storage/mysql",
        "StorageHost=127.0.0.1",
        f"StoragePort={database_port}",
        "StorageUser=slurm",
        "StoragePass=trial",
        "StorageLoc=slurm_acct_db",
    ]
    return "\n".join(lines) + "\n"


def _accounting(plan: TrialPlan) -> list[str]:
    if plan.mode == "partition":
        return ["AccountingStorageType=accounting_storage/none"]
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={plan.ports[-2]}",
        f"AccountingStoragePass={plan.munge_socket}",  # without it slurmctld asks the host's own munged and gives up
    ]


def _nodes(plan: TrialPlan) -> list[str]:
    names = f"n[1-{plan.nodes}]"
    ports = ",".join(str(port) for port in plan.ports[1 : 1 + plan.nodes])
    return [
        f"NodeName={names} NodeHostname={plan.host} NodeAddr=127.0.0.1 Port=[{ports}] CPUs={plan.cores_per_node} "
        f"Boards=1 SocketsPerBoard=1 CoresPerSocket={plan.cores_per_node} ThreadsPerCore=1 RealMemory=16000 "
        f"Gres=gpu:fake:{plan.gpus_per_node} State=UNKNOWN"
    ]
