"""The specs of custom resources: read strictly, handed on as records. Pure.

The CRDs' OpenAPI and CEL say the same; this copy guards against a CRD that is older than the operator.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from fish_contracts.labels import FILL_PRIORITY_CLASS, SERVING_PRIORITY_CLASS
from fish_operator.errors import InvalidSpecError
from fish_operator.spec import AutoScaling, DeploymentSpec, JobSpec, ManualScaling, PodSpec

_SECONDS_BY_UNIT: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h)")


def duration_s(text: object) -> float:
    """Return the seconds of a duration like `90s`, `3m` or `1h30m`."""
    parts = _DURATION.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write it like 90s, 3m or 1h30m")
    return sum(int(number) * _SECONDS_BY_UNIT[unit] for number, unit in parts)


Duration = Annotated[float, BeforeValidator(duration_s)]

EXIT_ALLOWANCE_S: Final = 10.0
"""Between the last stream's end and the kill: closing sockets and leaving the GPU."""


class _Edge(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class _Env(_Edge):
    name: str
    value: str = ""


class _Resources(_Edge):
    gpus: int = Field(default=1, ge=1)
    cpu: str | None = None
    memory: str | None = None


class _Model(_Edge):
    source: str


class _Engine(_Edge):
    image: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[_Env, ...] = ()
    resources: _Resources = _Resources()
    startup_timeout: Duration = 300.0


class _ScaleDown(_Edge):
    window: Duration = 180.0


class _Autoscaling(_Edge):
    min: int = Field(default=1, ge=1)
    max: int = Field(ge=1)
    streams_per_replica: int = Field(default=4, ge=1)
    scale_down: _ScaleDown = _ScaleDown()

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min is {self.min} and max is {self.max}: min must not be above max")
        return self


class _Drain(_Edge):
    stream_timeout: Duration = 120.0


class _Deployment(_Edge):
    model: _Model
    engine: _Engine = _Engine()
    replicas: int | None = Field(default=None, ge=0)
    autoscaling: _Autoscaling | None = None
    drain: _Drain = _Drain()
    priority_class_name: str = SERVING_PRIORITY_CLASS

    @model_validator(mode="after")
    def _check_scaling(self) -> Self:
        if (self.replicas is None) == (self.autoscaling is None):
            raise ValueError("set exactly one of replicas and autoscaling")
        return self


class _Location(_Edge):
    uri: str


class _Pipeline(_Edge):
    image: str | None = None
    recipe: str = "quick"
    args: tuple[str, ...] = ()
    env: tuple[_Env, ...] = ()


class _WorkerResources(_Edge):
    cpu: str | None = None
    memory: str | None = None


class _Workers(_Edge):
    max: int = Field(ge=1)
    gpus_per_worker: int = Field(default=1, ge=1)
    resources: _WorkerResources = _WorkerResources()


class _Checkpoint(_Edge):
    grace: Duration = 10.0


class _Job(_Edge):
    input: _Location
    output: _Location
    pipeline: _Pipeline = _Pipeline()
    workers: _Workers
    checkpoint: _Checkpoint = _Checkpoint()
    priority_class_name: str = FILL_PRIORITY_CLASS


def read_deployment_spec(raw: Mapping[str, object]) -> DeploymentSpec:
    """Read the spec of a TTSDeployment; raise `InvalidSpecError` with the name of each wrong field."""
    try:
        edge = _Deployment.model_validate(raw)
    except ValidationError as error:
        raise InvalidSpecError(_explain(error)) from error
    return DeploymentSpec(
        model_source=edge.model.source,
        pod=PodSpec(
            image=edge.engine.image,
            args=edge.engine.args,
            env=tuple((entry.name, entry.value) for entry in edge.engine.env),
            gpus=edge.engine.resources.gpus,
            cpu=edge.engine.resources.cpu,
            memory=edge.engine.resources.memory,
            priority_class=edge.priority_class_name,
            grace_s=edge.drain.stream_timeout + EXIT_ALLOWANCE_S,
        ),
        startup_timeout_s=edge.engine.startup_timeout,
        scaling=_scaling(edge),
    )


def _scaling(edge: _Deployment) -> ManualScaling | AutoScaling:
    if edge.autoscaling is None:
        assert edge.replicas is not None  # the validator let exactly one through
        return ManualScaling(replicas=edge.replicas)
    return AutoScaling(
        min_replicas=edge.autoscaling.min,
        max_replicas=edge.autoscaling.max,
        streams_per_replica=edge.autoscaling.streams_per_replica,
        scale_down_window_s=edge.autoscaling.scale_down.window,
    )


def read_job_spec(raw: Mapping[str, object]) -> JobSpec:
    """Read the spec of a CleaningJob; raise `InvalidSpecError` with the name of each wrong field."""
    try:
        edge = _Job.model_validate(raw)
    except ValidationError as error:
        raise InvalidSpecError(_explain(error)) from error
    return JobSpec(
        input_uri=edge.input.uri,
        output_uri=edge.output.uri,
        recipe=edge.pipeline.recipe,
        pod=PodSpec(
            image=edge.pipeline.image,
            args=edge.pipeline.args,
            env=tuple((entry.name, entry.value) for entry in edge.pipeline.env),
            gpus=edge.workers.gpus_per_worker,
            cpu=edge.workers.resources.cpu,
            memory=edge.workers.resources.memory,
            priority_class=edge.priority_class_name,
            grace_s=edge.checkpoint.grace,
        ),
        max_workers=edge.workers.max,
    )


def _explain(error: ValidationError) -> str:
    problems = (
        f"spec{''.join(f'.{part}' for part in problem['loc'])}: {problem['msg']} (found {problem['input']!r})"
        for problem in error.errors(include_url=False)
    )
    return "; ".join(problems)
