"""The two custom resources as records, as far as deciding and pods need them. Pure; `spec_edge` reads them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualScaling:
    """A fixed number of engines."""

    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoScaling:
    """As many engines as the streams need."""

    min_replicas: int
    max_replicas: int
    streams_per_replica: int
    scale_down_window_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpec:
    """What the pods of either custom resource have in common."""

    image: str | None
    """None: the operator's default."""
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    gpus: int
    cpu: str | None
    memory: str | None
    priority_class: str
    grace_s: float
    """From being asked to go to being killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A TTSDeployment, as far as deciding and pods need it."""

    model_source: str
    pod: PodSpec
    startup_timeout_s: float
    scaling: ManualScaling | AutoScaling


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A CleaningJob, as far as deciding and pods need it."""

    input_uri: str
    output_uri: str
    recipe: str
    pod: PodSpec
    max_workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecProblem:
    """A spec that cannot be used, and why."""

    message: str
