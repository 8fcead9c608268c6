"""A node that runs pods as processes, behind a real API server and scheduler."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fish_local.cluster import Cluster
from fish_local.errors import CommandFailed, UnknownName
from fish_local.node_files import NodeFaults

PRINT_ENVIRONMENT = "import json, os; print(json.dumps(dict(os.environ)), flush=True)"
WAIT = "import signal; print('up', flush=True); signal.pause()"
IGNORE_SIGTERM = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
)
END_IN_ORDER = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
print('up', flush=True)
while True: signal.pause()
"""
SERVE_WHEN_TOLD = """
import http.server, os, pathlib
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if pathlib.Path(os.environ['FLAG']).exists() else 503)
        self.end_headers()
http.server.HTTPServer((os.environ['POD_IP'], 8080), Handler).serve_forever()
"""

Json = dict[str, Any]


class Pods:
    """Makes and reads the pods of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, eventually: Callable[..., Any]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._eventually = eventually

    def create(self, name: str, script: str, *, gpus: int = 0, container: Json | None = None, **spec: object) -> None:
        main = {"name": "main", "image": "test/python:1", "args": ["-u", "-c", script], **(container or {})}
        if gpus:
            main["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": self._namespace},
                "spec": {"restartPolicy": "Never", "containers": [main], **spec},
            }
        )

    def apply(self, *objects: Json) -> None:
        self._cluster.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))

    def kubectl(self, *arguments: str) -> str:
        return self._cluster.kubectl("--namespace", self._namespace, *arguments)

    def get(self, name: str) -> Json:
        return json.loads(self.kubectl("get", "pod", name, "-o", "json"))

    def find(self, name: str) -> Json | None:
        text = self.kubectl("get", "pod", name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text else None

    def wait_for_phase(self, name: str, *phases: str) -> Json:
        self._eventually(lambda: self.get(name)["status"].get("phase") in phases)
        return self.get(name)

    def wait_for_reason(self, name: str, *reasons: str) -> Json:
        """Wait until the container waits for one of these reasons; return its waiting state."""

        def waiting() -> Json | None:
            statuses = self.get(name)["status"].get("containerStatuses") or [{}]
            found = statuses[0].get("state", {}).get("waiting", {})
            return found if found.get("reason") in reasons else None

        return self._eventually(waiting)

    def wait_for_log(self, name: str, text: str) -> str:
        return self._eventually(lambda: self._log_with(name, text))

    def wait_until_gone(self, name: str, *, within_s: float = 30.0) -> None:
        self._eventually(lambda: self.find(name) is None, within_s=within_s)

    def environment(self, name: str) -> dict[str, str]:
        self.wait_for_phase(name, "Succeeded")
        return json.loads(self.kubectl("logs", name))

    def _log_with(self, name: str, text: str) -> str | None:
        try:
            log = self.kubectl("logs", name)
        except CommandFailed:
            return None
        return log if text in log else None


@pytest.fixture
def pods(cluster: Cluster, namespace: str, eventually: Callable[..., Any]) -> Pods:
    return Pods(cluster, namespace, eventually)


def terminated(pod: Json) -> Json:
    return pod["status"]["containerStatuses"][0]["state"]["terminated"]


def test_what_a_container_prints_is_what_kubectl_logs_shows(pods: Pods) -> None:
    pods.create("hello", "print('one'); print('two')")
    pods.wait_for_phase("hello", "Succeeded")
    assert pods.kubectl("logs", "hello") == "one\ntwo\n"
    assert pods.kubectl("logs", "hello", "--tail=1") == "two\n"


def test_a_pod_gets_its_gpus_and_its_own_address(pods: Pods) -> None:
    address = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    pods.create("gpu", PRINT_ENVIRONMENT, gpus=2, container={"env": [address]})
    environment = pods.environment("gpu")
    pod = pods.get("gpu")
    ids = [f"GPU-{pod['spec']['nodeName']}-{index}" for index in range(2)]
    assert environment["CUDA_VISIBLE_DEVICES"].split(",") == ids
    assert environment["NVIDIA_VISIBLE_DEVICES"].split(",") == ids
    assert pod["metadata"]["annotations"]["fish-tts.io/gpu-ids"].split(",") == ids
    assert environment["POD_IP"] == pod["status"]["podIP"]
    assert environment["POD_IP"].startswith("127.")


def test_a_pod_without_gpus_sees_none(pods: Pods) -> None:
    pods.create("plain", PRINT_ENVIRONMENT)
    assert pods.environment("plain").get("CUDA_VISIBLE_DEVICES", "") == ""


def test_configuration_reaches_the_environment(pods: Pods) -> None:
    pods.kubectl("create", "configmap", "settings", "--from-literal=colour=green")
    pods.kubectl("create", "secret", "generic", "keys", "--from-literal=word=xyzzy")
    env = [
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "word"}}},
        {"name": "BOTH", "value": "$(COLOUR)-$(WORD)"},
    ]
    pods.create("configured", PRINT_ENVIRONMENT, container={"env": env})
    environment = pods.environment("configured")
    assert environment["BOTH"] == "green-xyzzy"


def test_a_deployments_pod_is_a_process_and_is_replaced_when_it_dies(
    pods: Pods, eventually: Callable[..., Any]
) -> None:
    pods.kubectl("create", "deployment", "web", "--image=test/python", "--", "python", "-u", "-c", WAIT)
    name = eventually(lambda: pods.kubectl("get", "pod", "-o", "name")).strip().removeprefix("pod/")
    pods.kubectl("delete", "deployment", "web", "--cascade=foreground", "--wait=false")
    pods.wait_until_gone(name)


def test_more_gpus_than_a_node_has_are_refused_on_arrival(pods: Pods) -> None:
    pods.create("greedy", WAIT, gpus=3, nodeName="node-0")
    status = pods.wait_for_phase("greedy", "Failed")["status"]
    assert status["reason"] == "OutOfnvidia.com/gpu"


def test_more_gpus_than_any_node_has_keep_a_pod_pending(pods: Pods, eventually: Callable[..., Any]) -> None:
    pods.create("waiting", WAIT, gpus=3)
    (condition,) = eventually(lambda: pods.get("waiting")["status"].get("conditions"))
    assert condition["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in condition["message"]


def test_an_unknown_image_is_answered_with_the_known_ones(pods: Pods) -> None:
    pods.create("typo", WAIT, container={"image": "fish-tts/engin:0.1.0"})

    message = pods.wait_for_reason("typo", "ErrImagePull", "ImagePullBackOff")["message"]
    assert "fish-tts/engin" in message
    assert "fish-tts/engine" in message
    assert "test/python" in message


@pytest.mark.parametrize(("code", "phase", "reason"), [(0, "Succeeded", "Completed"), (75, "Failed", "Error")])
def test_the_exit_code_of_a_container_is_seen(pods: Pods, code: int, phase: str, reason: str) -> None:
    pods.create("ending", f"raise SystemExit({code})")
    ending = terminated(pods.wait_for_phase("ending", phase))
    assert (ending["exitCode"], ending["reason"]) == (code, reason)


def test_the_last_word_of_a_container_is_seen(pods: Pods) -> None:
    pods.create("speaking", "import os, pathlib; pathlib.Path(os.environ['TERMINATION_LOG']).write_text('good-bye')")
    assert terminated(pods.wait_for_phase("speaking", "Succeeded"))["message"] == "good-bye"


def test_a_deleted_pod_ends_in_order_and_says_how(pods: Pods, cluster: Cluster) -> None:
    pods.create("orderly", END_IN_ORDER, terminationGracePeriodSeconds=30)
    pods.wait_for_log("orderly", "up")
    # A finalizer keeps the object long enough to be looked at.
    pods.kubectl("patch", "pod", "orderly", "-p", '{"metadata": {"finalizers": ["fish-tts.io/test"]}}')
    pods.kubectl("delete", "pod", "orderly", "--wait=false")
    pod = pods.wait_for_phase("orderly", "Failed", "Succeeded")
    pods.kubectl("patch", "pod", "orderly", "--type=merge", "-p", '{"metadata": {"finalizers": []}}')
    assert terminated(pod)["exitCode"] == 75
    pods.wait_until_gone("orderly")


def test_a_pod_that_ignores_sigterm_is_killed_at_the_end_of_its_grace(pods: Pods) -> None:
    pods.create("deaf", IGNORE_SIGTERM, terminationGracePeriodSeconds=2)
    pods.wait_for_log("deaf", "up")
    pods.kubectl("delete", "pod", "deaf", "--wait=false")
    assert pods.find("deaf") is not None
    pods.wait_until_gone("deaf", within_s=15)


def test_a_grace_that_is_shortened_later_counts(pods: Pods) -> None:
    pods.create("deaf", IGNORE_SIGTERM, terminationGracePeriodSeconds=300)
    pods.wait_for_log("deaf", "up")
    pods.kubectl("delete", "pod", "deaf", "--wait=false")
    pods.kubectl("delete", "pod", "deaf", "--wait=false", "--grace-period=1")
    pods.wait_until_gone("deaf", within_s=15)


def test_gpus_are_free_again_only_when_the_process_has_gone(
    pods: Pods, cluster: Cluster, eventually: Callable[..., Any]
) -> None:
    pods.create("holder", END_IN_ORDER, gpus=2)
    pods.wait_for_log("holder", "up")
    holders = [gpu.pod for gpu in cluster.status().gpus if gpu.pod]
    assert [holder.partition("/")[2] for holder in holders] == ["holder", "holder"]
    pods.kubectl("delete", "pod", "holder", "--wait=false")
    eventually(lambda: not [gpu for gpu in cluster.status().gpus if gpu.pod])


def test_readiness_follows_the_probe(pods: Pods, eventually: Callable[..., Any], tmp_path: Path) -> None:
    flag = tmp_path / "ready"
    env = [
        {"name": "FLAG", "value": str(flag)},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    probe = {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
    pods.create("probed", SERVE_WHEN_TOLD, container={"env": env, "readinessProbe": probe})
    pods.wait_for_phase("probed", "Running")

    def is_ready() -> bool:
        conditions = {entry["type"]: entry["status"] for entry in pods.get("probed")["status"]["conditions"]}
        return conditions.get("Ready") == "True"

    assert not is_ready()
    flag.touch()
    eventually(is_ready)
    flag.unlink()
    eventually(lambda: not is_ready())


def test_a_failed_liveness_probe_starts_the_container_again(pods: Pods, eventually: Callable[..., Any]) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    container = {"livenessProbe": probe}
    pods.create("sick", END_IN_ORDER, container=container, restartPolicy="Always")
    eventually(lambda: (pods.get("sick")["status"].get("containerStatuses") or [{}])[0].get("restartCount", 0) >= 1)


def test_a_pod_acts_with_the_rights_of_its_account_and_no_more(pods: Pods, namespace: str) -> None:
    pods.kubectl("create", "serviceaccount", "reader")
    pods.kubectl("create", "role", "read-pods", "--verb=get,list", "--resource=pods")
    pods.kubectl("create", "rolebinding", "read-pods", "--role=read-pods", f"--serviceaccount={namespace}:reader")
    script = f"""
import json, ssl, os, urllib.request, urllib.error, yaml
config = yaml.safe_load(open(os.environ['KUBECONFIG']))
cluster, user = config['clusters'][0]['cluster'], config['users'][0]['user']
import base64
if 'certificate-authority-data' in cluster:
    trust = ssl.create_default_context(cadata=base64.b64decode(cluster['certificate-authority-data']).decode())
else:
    trust = ssl.create_default_context(cafile=cluster['certificate-authority'])
token = user.get('token') or open(user['tokenFile']).read()
def status(path):
    request = urllib.request.Request(cluster['server'] + path, headers={{'Authorization': 'Bearer ' + token}})
    try:
        return urllib.request.urlopen(request, context=trust).status
    except urllib.error.HTTPError as error:
        return error.code
print(status('/api/v1/namespaces/{namespace}/pods'), status('/api/v1/namespaces/{namespace}/secrets'))
"""
    pods.create("caller", script, serviceAccountName="reader")
    pods.wait_for_phase("caller", "Succeeded")
    assert pods.kubectl("logs", "caller") == "200 403\n"


def test_pods_outlive_a_crash_of_their_node(pods: Pods, cluster: Cluster, eventually: Callable[..., Any]) -> None:
    pods.create("survivor", "import os; print(os.getpid(), flush=True); " + WAIT, gpus=1, nodeName="node-0")
    pid = int(pods.wait_for_log("survivor", "up").splitlines()[0])
    cluster.kill("node-0")
    assert Path(f"/proc/{pid}").exists()
    cluster.revive("node-0")
    os.kill(pid, signal.SIGTERM)
    pod = pods.wait_for_phase("survivor", "Failed", "Succeeded")
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not Path(f"/proc/{pid}").exists()
    eventually(lambda: not [gpu for gpu in cluster.status().gpus if gpu.pod])


def test_a_pod_that_is_killed_shows_the_signal(pods: Pods, cluster: Cluster, namespace: str) -> None:
    pods.create("victim", END_IN_ORDER)
    pods.wait_for_log("victim", "up")
    assert cluster.kill_pods(f"{namespace}/vic*") == [f"{namespace}/victim"]
    assert terminated(pods.wait_for_phase("victim", "Failed"))["exitCode"] == 137


def test_a_pod_that_must_not_start_starts_when_the_fault_is_cleared(
    pods: Pods, cluster: Cluster, namespace: str
) -> None:
    cluster.set_faults(dict.fromkeys(cluster.faults(), NodeFaults(never_start=(f"{namespace}/*",))))
    pods.create("held", "print('up')", nodeName="node-0")
    pods.wait_for_reason("held", "ContainerCreating")
    cluster.set_faults(dict.fromkeys(cluster.faults(), NodeFaults()))
    pods.wait_for_phase("held", "Succeeded")


def test_a_fault_for_an_unknown_node_is_answered_with_the_known_ones(cluster: Cluster) -> None:
    with pytest.raises(UnknownName, match="no node is called 'node-7'; there are node-0, node-1"):
        cluster.set_faults({"node-7": NodeFaults(lost_heartbeat=True)})
