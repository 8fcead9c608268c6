"""Custom resources are read strictly, and what is wrong is named."""

import pytest

from fish_operator.errors import InvalidSpecError
from fish_operator.spec import AutoScaling, ManualScaling
from fish_operator.spec_edge import duration_s, read_deployment_spec, read_job_spec


def tts(**changes: object) -> dict[str, object]:
    return {"model": {"source": "file:///m"}, "autoscaling": {"max": 4}, **changes}


def clean(**changes: object) -> dict[str, object]:
    return {"input": {"uri": "file:///in"}, "output": {"uri": "file:///out"}, "workers": {"max": 4}, **changes}


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("3m", 180), ("1h30m", 5400), ("500ms", 0.5)])
def test_durations_are_read_as_people_write_them(text: str, seconds: float):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "3", "3 m", "m3", "3d", 3, None])
def test_what_is_not_a_duration_is_named(text: object):
    with pytest.raises(ValueError, match="is not a duration"):
        duration_s(text)


def test_defaults_are_those_of_the_crd():
    spec = read_deployment_spec(tts())
    assert spec.scaling == AutoScaling(min_replicas=1, max_replicas=4, streams_per_replica=4, scale_down_window_s=180.0)
    assert (spec.pod.gpus, spec.pod.priority_class, spec.pod.grace_s) == (1, "fish-serving", 130.0)
    assert spec.startup_timeout_s == 300.0


def test_a_fixed_number_of_replicas_needs_no_autoscaling():
    spec = read_deployment_spec({"model": {"source": "file:///m"}, "replicas": 2})
    assert spec.scaling == ManualScaling(replicas=2)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"autoscaling": {"min": 5, "max": 4}}, "min is 5 and max is 4"),
        ({"replicas": 1}, "exactly one of replicas and autoscaling"),
        ({"autoscaling": None}, "exactly one of replicas and autoscaling"),
        ({"modle": {}}, "spec.modle"),
        ({"autoscaling": {"max": 4, "scaleDown": {"window": "soon"}}}, "spec.autoscaling.scaleDown.window.*'soon'"),
        ({"engine": {"resources": {"gpus": 0}}}, "spec.engine.resources.gpus.*0"),
    ],
)
def test_a_wrong_field_of_a_deployment_is_named_with_its_value(changes: dict[str, object], named: str):
    with pytest.raises(InvalidSpecError, match=named):
        read_deployment_spec(tts(**changes))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"workers": {"max": 0}}, "spec.workers.max.*0"),
        ({"checkpoint": {"grace": "10"}}, "spec.checkpoint.grace"),
        ({"input": {}}, "spec.input.uri"),
        ({"piepline": {}}, "spec.piepline"),
    ],
)
def test_a_wrong_field_of_a_job_is_named_with_its_value(changes: dict[str, object], named: str):
    with pytest.raises(InvalidSpecError, match=named):
        read_job_spec(clean(**changes))
