"""The chart on a real API server: it installs with no values, grants no more than needed, and refuses wrong resources."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel

from fish_contracts.labels import FILL_PRIORITY_CLASS, SERVING_PRIORITY_CLASS
from fish_contracts.priority import WorkClass, preemption_policy, priority_value
from fish_local.cluster import Cluster
from fish_local.errors import CommandFailed
from fish_operator.spec_edge import read_deployment_spec, read_job_spec
from fish_operator.status import DeploymentStatus, JobStatus

ROOT = Path(__file__).parents[2]
CHART = str(ROOT / "helm" / "fish-tts")
NAMESPACE = "fish-system"

Json = dict[str, Any]


@pytest.fixture(scope="module")
def installed(cluster: Cluster) -> Cluster:
    """Return a cluster with the chart in it, with no values given."""
    cluster.helm(
        "upgrade", "--install", "fish-tts", CHART, "-n", NAMESPACE, "--create-namespace", "--wait", "--timeout", "120s"
    )
    return cluster


@pytest.fixture(scope="module")
def rendered(cluster: Cluster) -> list[Json]:
    return list(yaml.safe_load_all(cluster.helm("template", "fish-tts", CHART, "-n", NAMESPACE)))


def of_kind(objects: list[Json], kind: str) -> list[Json]:
    return [item for item in objects if item["kind"] == kind]


def tts(spec: Json) -> str:
    return json.dumps(
        {
            "apiVersion": "fish-tts.io/v1alpha1",
            "kind": "TTSDeployment",
            "metadata": {"name": "refused"},
            "spec": {"model": {"source": "file:///m"}, "autoscaling": {"max": 4}} | spec,
        }
    )


def clean(spec: Json) -> str:
    return json.dumps(
        {
            "apiVersion": "fish-tts.io/v1alpha1",
            "kind": "CleaningJob",
            "metadata": {"name": "refused"},
            "spec": {"input": {"uri": "file:///in"}, "output": {"uri": "file:///out"}, "workers": {"max": 1}} | spec,
        }
    )


def test_the_operator_becomes_ready_with_no_values(installed: Cluster, get: Callable[..., Json]):
    deployment = get("deployment", "fish-tts", "-n", NAMESPACE)
    assert deployment["status"]["readyReplicas"] == 1


def test_priority_classes_are_the_rule(rendered: list[Json]):
    classes = {item["metadata"]["name"]: item for item in of_kind(rendered, "PriorityClass")}
    for name, work_class in (
        (SERVING_PRIORITY_CLASS, WorkClass.INFERENCE),
        (FILL_PRIORITY_CLASS, WorkClass.CLEANING),
    ):
        assert classes[name]["value"] == priority_value(work_class)
        assert classes[name]["preemptionPolicy"] == preemption_policy(work_class)


def test_the_operator_has_no_rights_of_a_cluster_admin(rendered: list[Json]):
    rules = [rule for role in of_kind(rendered, "ClusterRole") for rule in role["rules"]]
    granted = {word for rule in rules for words in rule.values() for word in words}
    assert not granted & {"*", "secrets", "escalate", "bind", "impersonate", "customresourcedefinitions"}


def test_uninstalling_keeps_the_resources_of_users(rendered: list[Json]):
    crds = of_kind(rendered, "CustomResourceDefinition")
    assert len(crds) == 2
    assert all(item["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for item in crds)


def test_the_operators_pod_fits_the_restricted_pod_security_standard(rendered: list[Json]):
    (deployment,) = of_kind(rendered, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_one_operator_at_a_time_decides(rendered: list[Json]):
    (deployment,) = of_kind(rendered, "Deployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})


def crd_schemas(rendered: list[Json], kind: str) -> Json:
    (crd,) = (item for item in of_kind(rendered, "CustomResourceDefinition") if item["spec"]["names"]["kind"] == kind)
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]


def sample(schema: Json) -> Any:
    """Return a value that has every field of a schema."""
    if "default" in schema and schema["type"] != "object":
        return schema["default"]
    match schema["type"]:
        case "object":
            return {name: sample(field) for name, field in schema["properties"].items()}
        case "array":
            return [sample(schema["items"])]
        case "integer":
            return schema.get("minimum", 1)
        case _:
            return "1"


def names(schema: Json, definitions: Json) -> Json | None:
    """Return the field names of a pydantic schema as nested keys, in the CRD's spelling."""
    for choice in (schema, *schema.get("anyOf", [])):
        found = definitions[choice["$ref"].rsplit("/", 1)[1]] if "$ref" in choice else choice
        if "properties" in found:
            return {to_camel(name): names(field, definitions) for name, field in found["properties"].items()}
        if found.get("type") == "array":
            return names(found["items"], definitions)
    return None


def crd_names(schema: Json) -> Json | None:
    if "properties" in schema:
        return {name: crd_names(field) for name, field in schema["properties"].items()}
    return crd_names(schema["items"]) if "items" in schema else None


@pytest.mark.parametrize(("kind", "status"), [("TTSDeployment", DeploymentStatus), ("CleaningJob", JobStatus)])
def test_the_api_server_keeps_every_field_of_a_status(rendered: list[Json], kind: str, status: type):
    """A field that the CRD lacks would be dropped without a word."""
    written = TypeAdapter(status).json_schema()
    assert names(written, written.get("$defs", {})) == crd_names(crd_schemas(rendered, kind)["status"])


def test_the_operator_understands_every_field_of_a_spec(rendered: list[Json]):
    tts_spec = sample(crd_schemas(rendered, "TTSDeployment")["spec"])
    del tts_spec["replicas"]
    assert read_deployment_spec(tts_spec).pod.priority_class == SERVING_PRIORITY_CLASS
    assert read_job_spec(sample(crd_schemas(rendered, "CleaningJob")["spec"])).recipe == "quick"


def test_defaults_of_the_crds_are_those_of_the_operator(rendered: list[Json]):
    full = sample(crd_schemas(rendered, "TTSDeployment")["spec"])
    read = read_deployment_spec({"model": full["model"], "autoscaling": {"max": full["autoscaling"]["max"]}})
    assert read.scaling == read_deployment_spec({"model": full["model"], "autoscaling": full["autoscaling"]}).scaling
    assert (
        read.pod.grace_s
        == read_deployment_spec({"model": full["model"], "replicas": 1, "drain": full["drain"]}).pod.grace_s
    )


@pytest.mark.parametrize("kind", ["TTSDeployment", "CleaningJob"])
def test_kubectl_can_explain_every_field_of_a_spec(rendered: list[Json], kind: str):
    assert unexplained(crd_schemas(rendered, kind)["spec"], "spec") == []


def unexplained(schema: Json, path: str) -> list[str]:
    """Return the fields below a schema that have no description."""
    fields = {f"{path}.{name}": field for name, field in schema.get("properties", {}).items()}
    here = [name for name, field in fields.items() if "description" not in field]
    return here + [deeper for name, field in fields.items() for deeper in unexplained(field, name)]


@pytest.mark.parametrize(
    ("value", "named"), [("operator.tickSeconds=0", "tickSeconds"), ("operator.tickSecond=1", "tickSecond")]
)
def test_a_wrong_value_is_refused_by_name(cluster: Cluster, value: str, named: str):
    with pytest.raises(CommandFailed, match=named):
        cluster.helm("template", "fish-tts", CHART, "--set", value)


@pytest.mark.parametrize(
    ("manifest", "named"),
    [
        (tts({"modell": {}}), 'unknown field "spec.modell"'),
        (tts({"autoscaling": {"max": 4, "mim": 1}}), 'unknown field "spec.autoscaling.mim"'),
        (tts({"autoscaling": {"min": 5, "max": 4}}), "spec.autoscaling.min.*min must not be above max"),
        (tts({"autoscaling": {"min": 1}}), "spec.autoscaling.max.*Required"),
        (tts({"replicas": 1}), "exactly one of replicas and autoscaling"),
        (tts({"model": {"source": "s3://bucket"}}), "spec.model.source.*file:///path"),
        (tts({"drain": {"streamTimeout": "31m"}}), "spec.drain.streamTimeout.*between 1s and 30m"),
        (tts({"autoscaling": {"max": 4, "scaleDown": {"window": "soon"}}}), "spec.autoscaling.scaleDown.window"),
        (tts({"engine": {"resources": {"gpus": 0}}}), "spec.engine.resources.gpus"),
        (clean({"workers": {"max": 0}}), "spec.workers.max"),
        (clean({"worker": {}}), 'unknown field "spec.worker"'),
        (clean({"output": {"uri": "file:///in"}}), "input.uri and output.uri must differ"),
        (clean({"checkpoint": {"grace": "2m"}}), "spec.checkpoint.grace.*between 1s and 60s"),
    ],
)
def test_a_wrong_resource_is_refused_by_the_api_server_with_its_fields_name(
    installed: Cluster, manifest: str, named: str
):
    with pytest.raises(CommandFailed, match=f"(?s){named}"):
        installed.kubectl("apply", "-f", "-", stdin=manifest)


def test_the_examples_are_accepted(installed: Cluster):
    for name in ("tts.yaml", "clean.yaml"):
        installed.kubectl("apply", "--dry-run=server", "-f", str(ROOT / "examples" / name))
