"""The pods that are created."""

from dataclasses import replace

from inline_snapshot import snapshot

from fish_operator.notes import ReclaimNote, read_note
from fish_operator.objects import Images, pod_manifest
from fish_operator.plan import CreateEngine, CreateWorker

IMAGES = Images(engine="fish-tts/engine:9", cleaning="fish-tts/cleaning:9")


def create_engine(make, **changes: object) -> CreateEngine:
    deployment = make.deployment()
    action = CreateEngine(
        owner=deployment.key, owner_uid="uid", spec=deployment.spec, name="voice-engine-0", failures=0, note=None
    )
    return replace(action, **changes)


def create_worker(make) -> CreateWorker:
    job = make.job()
    return CreateWorker(owner=job.key, owner_uid="uid", spec=job.spec, name="librivox-worker-0", failures=2)


def container(manifest) -> dict:
    (only,) = manifest["spec"]["containers"]
    return only


def test_an_engine_serves_its_checkpoint_on_its_own_address(make):
    made = container(pod_manifest(create_engine(make), IMAGES))
    assert made["image"] == "fish-tts/engine:9"
    assert " ".join(made["args"]) == snapshot(
        "serve --checkpoint /models/voice --host $(POD_IP) --port 8080 --metrics-port 9090 --max-streams 4"
    )


def test_a_worker_cleans_its_input_on_its_own_address(make):
    made = container(pod_manifest(create_worker(make), IMAGES))
    assert made["image"] == "fish-tts/cleaning:9"
    assert " ".join(made["args"]) == snapshot(
        "run --input file:///in --output file:///out --recipe quick --host $(POD_IP) --port 8080 --metrics-port 9090"
    )


def test_users_args_come_last_so_that_they_win(make):
    action = create_engine(make)
    spec = replace(action.spec, pod=replace(action.spec.pod, args=("--codec", "/c"), image="mine:1"))
    made = container(pod_manifest(replace(action, spec=spec), IMAGES))
    assert made["args"][-2:] == ["--codec", "/c"]
    assert made["image"] == "mine:1"


def test_a_worker_asks_for_no_cpu_so_that_engines_come_first(make):
    assert container(pod_manifest(create_worker(make), IMAGES))["resources"] == {
        "requests": {"nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }


def test_pods_are_never_restarted_in_place_and_go_with_their_owner(make):
    manifest = pod_manifest(create_worker(make), IMAGES)
    assert manifest["spec"]["restartPolicy"] == "Never"
    assert manifest["spec"]["priorityClassName"] == "fish-fill"
    assert manifest["spec"]["terminationGracePeriodSeconds"] == 10
    assert manifest["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "fish-tts.io/v1alpha1",
            "kind": "CleaningJob",
            "name": "librivox",
            "uid": "uid",
            "controller": True,
        }
    ]
    assert manifest["metadata"]["annotations"] == {"fish-tts.io/failures": "2"}


def test_an_engine_is_watched_in_a_way_that_lets_it_drain(make):
    made = container(pod_manifest(create_engine(make), IMAGES))
    paths = {name: made[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert paths == {"startupProbe": "/v1/health", "readinessProbe": "/v1/health", "livenessProbe": "/v1/load"}
    assert made["startupProbe"]["periodSeconds"] * made["startupProbe"]["failureThreshold"] == 300


def test_pods_fit_the_restricted_pod_security_standard(make):
    for action in (create_engine(make), create_worker(make)):
        manifest = pod_manifest(action, IMAGES)
        assert container(manifest)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert manifest["spec"]["automountServiceAccountToken"] is False


def test_a_reclaim_travels_on_the_pod_and_comes_back(make):
    note = ReclaimNote(owner="default/voice", victim="w", seen_at_s=1.5, evicted_at_s=2.5, freed_at_s=3.5)
    manifest = pod_manifest(create_engine(make, note=note), IMAGES)
    assert read_note(manifest["metadata"]["annotations"]["fish-tts.io/reclaim"]) == note


def test_a_note_that_somebody_edited_into_nonsense_is_ignored():
    assert [read_note(text) for text in (None, "", "{}", "[]", '"x"', "null")] == [None] * 6
