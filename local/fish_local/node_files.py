"""The two files through which a node and this package talk: status.json, which the node writes, and faults.json, which it reads.

Both are replaced as a whole, so a reader never meets half a file.
"""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import BaseModel, Field, TypeAdapter


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuView:
    """A GPU as its node accounts for it: `pod` is NAMESPACE/NAME of the holder, None when it is free."""

    id: str
    node: str
    pod: str | None
    work_class: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodProcesses:
    """The process groups of a pod's running containers."""

    pod: str
    groups: tuple[int, ...]

    def matches(self, pattern: str) -> bool:
        """Tell whether the pod's NAMESPACE/NAME fits a pattern with `*` and `?`, which do not cross the slash."""
        wanted, own = pattern.split("/"), self.pod.split("/")
        return len(wanted) == len(own) and all(map(fnmatchcase, own, wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowExit:
    """Pods of this pattern learn of their end `delay_s` late."""

    pod: str
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFaults:
    """What goes wrong on a node on purpose. Pods are patterns over NAMESPACE/NAME."""

    lost_heartbeat: bool = False
    """The node no longer says that it lives."""
    never_start: tuple[str, ...] = ()
    """These pods are taken, but none of their processes is started."""
    ignore_sigterm: tuple[str, ...] = ()
    """These pods are not told to stop; SIGKILL ends them when their grace is over."""
    slow_exit: tuple[SlowExit, ...] = ()

    def and_also(self, more: Self) -> Self:
        """Return these faults together with others."""
        return replace(
            self,
            lost_heartbeat=self.lost_heartbeat or more.lost_heartbeat,
            never_start=_together(self.never_start, more.never_start),
            ignore_sigterm=_together(self.ignore_sigterm, more.ignore_sigterm),
            # The node takes the first that fits, so the latest word comes first.
            slow_exit=(*more.slow_exit, *self.slow_exit),
        )


class _Gpu(BaseModel):
    id: str
    pod: str | None
    work_class: Annotated[str | None, Field(alias="class")]


class _Container(BaseModel):
    process_group: int


class _Pod(BaseModel):
    pod: str
    containers: list[_Container]


class _Report(BaseModel):
    node: str
    gpus: list[_Gpu]
    pods: list[_Pod]


_FAULTS: Final = TypeAdapter(NodeFaults)


def gpu_holders(node_dir: Path) -> list[GpuView]:
    """Return the GPUs of a node with their holders; none before the node's first report."""
    report = _report(node_dir)
    if report is None:
        return []
    return [GpuView(id=gpu.id, node=report.node, pod=gpu.pod, work_class=gpu.work_class) for gpu in report.gpus]


def pod_processes(node_dir: Path) -> list[PodProcesses]:
    """Return what runs on a node, for the pods of which anything runs."""
    report = _report(node_dir)
    found = [
        PodProcesses(
            pod=pod.pod,
            groups=tuple(container.process_group for container in pod.containers if container.process_group),
        )
        for pod in (report.pods if report else ())
    ]
    return [pod for pod in found if pod.groups]


def read_faults(node_dir: Path) -> NodeFaults:
    """Return the faults that are on."""
    try:
        return _FAULTS.validate_json((node_dir / "faults.json").read_bytes())
    except FileNotFoundError:
        return NodeFaults()


def write_faults(node_dir: Path, faults: NodeFaults) -> None:
    """Put exactly these faults on."""
    draft = node_dir / "faults.json.draft"
    draft.write_bytes(_FAULTS.dump_json(faults, indent=2))
    draft.replace(node_dir / "faults.json")


def _report(node_dir: Path) -> _Report | None:
    try:
        return _Report.model_validate_json((node_dir / "status.json").read_bytes())
    except FileNotFoundError:
        return None


def _together(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
