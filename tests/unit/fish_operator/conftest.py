"""Builders with defaults, so that a test names only what it is about."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import count

import pytest

from fish_contracts.priority import WorkClass
from fish_contracts.reports import LoadReport, ProgressReport
from fish_operator.decide import decide
from fish_operator.history import History
from fish_operator.plan import CreateEngine, CreateWorker, DrainEngine, EvictWorker, Plan, RemovePod
from fish_operator.spec import AutoScaling, DeploymentSpec, JobSpec, ManualScaling, PodSpec
from fish_operator.status import DeploymentStatus, JobStatus
from fish_operator.view import (
    ClusterView,
    DeploymentView,
    JobView,
    NodeView,
    ObjectKey,
    PodEnd,
    PodStage,
    PodView,
)

NOW_S = 1_800_000_000.0
_NUMBERS = count()


class Make:
    """Makes records of a cluster."""

    def __init__(self) -> None:
        self._numbers = _NUMBERS

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(namespace="default", name=name)

    def pod_spec(self, **changes: object) -> PodSpec:
        defaults = PodSpec(
            image=None, args=(), env=(), gpus=1, cpu=None, memory=None, priority_class="fish-serving", grace_s=30.0
        )
        return replace(defaults, **changes)  # type: ignore[arg-type]

    def autoscaling(self, **changes: object) -> AutoScaling:
        defaults = AutoScaling(min_replicas=1, max_replicas=4, streams_per_replica=4, scale_down_window_s=60.0)
        return replace(defaults, **changes)  # type: ignore[arg-type]

    def deployment(
        self,
        name: str = "voice",
        *,
        scaling: AutoScaling | ManualScaling | None = None,
        gpus: int = 1,
        desired: int | None = None,
        created_at_s: float = NOW_S - 1000,
    ) -> DeploymentView:
        return DeploymentView(
            key=self.key(name),
            uid=f"uid-{name}",
            generation=1,
            created_at_s=created_at_s,
            spec=DeploymentSpec(
                model_source="file:///models/voice",
                pod=self.pod_spec(gpus=gpus),
                startup_timeout_s=300.0,
                scaling=scaling or self.autoscaling(),
            ),
            status=DeploymentStatus(desired_replicas=desired),
        )

    def job(
        self, name: str = "librivox", *, max_workers: int = 8, gpus: int = 1, status: JobStatus | None = None
    ) -> JobView:
        return JobView(
            key=self.key(name),
            uid=f"uid-{name}",
            generation=1,
            created_at_s=NOW_S - 1000,
            spec=JobSpec(
                input_uri="file:///in",
                output_uri="file:///out",
                recipe="quick",
                pod=self.pod_spec(gpus=gpus, priority_class="fish-fill", grace_s=10.0),
                max_workers=max_workers,
            ),
            status=status or JobStatus(),
        )

    def node(self, name: str, *, gpus: int = 2, is_schedulable: bool = True, unhealthy_gpus: int = 0) -> NodeView:
        return NodeView(
            name=name, gpus=gpus, unhealthy_gpus=unhealthy_gpus, is_ready=True, is_schedulable=is_schedulable
        )

    def engine(self, *, owner: str = "voice", **changes: object) -> PodView:
        return self._pod(owner, WorkClass.INFERENCE, "engine", changes)

    def worker(self, *, owner: str = "librivox", **changes: object) -> PodView:
        return self._pod(owner, WorkClass.CLEANING, "worker", changes)

    def _pod(self, owner: str, work_class: WorkClass, role: str, changes: Mapping[str, object]) -> PodView:
        number = next(self._numbers)
        stage = changes.get("stage", PodStage.READY)
        node = None if stage is PodStage.UNSCHEDULED else "node-0"
        defaults = PodView(
            key=self.key(f"{owner}-{role}-{number}"),
            uid=f"pod-{number}",
            work_class=work_class,
            owner=self.key(owner),
            node=node,
            ip="127.0.1.1",
            gpus=1,
            stage=PodStage.READY,
            is_draining=False,
            created_at_s=NOW_S - 100 + number / 1000,
            scheduled_at_s=NOW_S - 100,
            started_at_s=NOW_S - 99 + number / 1000,
            ready_at_s=NOW_S - 90,
            waiting="",
            failures=0,
            note=None,
            end=None,
        )
        return replace(defaults, **changes)  # type: ignore[arg-type]

    def ended(self, pod: PodView, exit_code: int | None, **changes: object) -> PodView:
        end = PodEnd(exit_code=exit_code, finished_at_s=NOW_S, reason="", message="", was_deleted=False, disruption="")
        return replace(pod, stage=PodStage.ENDED, end=replace(end, **changes))  # type: ignore[arg-type]

    def load(self, active: int = 0, queued: int = 0) -> LoadReport:
        return LoadReport(active_streams=active, queued_streams=queued, max_streams=4, is_draining=False)

    def progress(self, *, at_risk_s: float = 1.0, total: int = 100, committed: int = 0) -> ProgressReport:
        return ProgressReport(
            units_total=total,
            units_committed=committed,
            items_total=total * 10,
            items_committed=committed * 10,
            items_rejected=0,
            audio_s=0.0,
            work_at_risk_s=at_risk_s,
        )

    def view(
        self,
        *,
        pods: Iterable[PodView] = (),
        deployments: Iterable[DeploymentView] = (),
        jobs: Iterable[JobView] = (),
        nodes: Iterable[NodeView] | None = None,
        loads: Mapping[str, LoadReport] | None = None,
        progress: Mapping[str, ProgressReport] | None = None,
        departed: Iterable[PodView] = (),
        at_s: float = 0.0,
    ) -> ClusterView:
        """Return a cluster of two nodes with two GPUs, `at_s` seconds after the start of the test."""
        return ClusterView(
            now_s=NOW_S + at_s,
            monotonic_s=at_s,
            nodes=tuple(nodes) if nodes is not None else (self.node("node-0"), self.node("node-1")),
            pods=tuple(pods),
            departed=tuple(departed),
            deployments=tuple(deployments),
            jobs=tuple(jobs),
            loads=loads or {},
            progress=progress or {},
        )


class Simulation:
    """Carries plans out on a view, as an API server, a scheduler and nodes would, as far as they have got."""

    def __init__(self, make: Make, view: ClusterView) -> None:
        self.make = make
        self.view = view
        self.history = History()
        self.evicted: list[str] = []

    def decide(self) -> Plan:
        plan, self.history = decide(self.view, self.history)
        return plan

    def crash(self) -> None:
        """Forget everything that is not in the cluster."""
        self.history = History()

    def tick(self, *, seconds: float = 1.0) -> Plan:
        """Decide and act; the world moves on by some seconds without ending anything by itself."""
        plan = self.decide()
        for action in plan.pods:
            self._act(action)
        statuses = {(type(write.status), write.key): write.status for write in plan.statuses}
        self.view = replace(
            self.view,
            deployments=tuple(
                replace(item, status=statuses.get((DeploymentStatus, item.key), item.status))
                for item in self.view.deployments
            ),
            jobs=tuple(
                replace(item, status=statuses.get((JobStatus, item.key), item.status)) for item in self.view.jobs
            ),
            now_s=self.view.now_s + seconds,
            monotonic_s=self.view.monotonic_s + seconds,
        )
        return plan

    def _act(self, action: object) -> None:
        match action:
            case CreateEngine(owner=owner, note=note):
                self._add(self.make.engine(owner=owner.name, note=note, gpus=action.spec.pod.gpus), action.name)
            case CreateWorker(owner=owner):
                self._add(self.make.worker(owner=owner.name, gpus=action.spec.pod.gpus), action.name)
            case EvictWorker(pod=pod, note=note):
                self.evicted.append(pod.uid)
                self.change(pod, stage=PodStage.TERMINATING, note=note)
            case DrainEngine(pod=pod):
                self.change(pod, stage=PodStage.TERMINATING, is_draining=True)
            case RemovePod(pod=pod):
                self.remove(pod)

    def _add(self, pod: PodView, name: str) -> None:
        created = replace(
            pod,
            key=self.make.key(name),
            stage=PodStage.UNSCHEDULED,
            node=None,
            created_at_s=self.view.now_s,
            scheduled_at_s=None,
            started_at_s=None,
            ready_at_s=None,
        )
        self.view = replace(self.view, pods=(*self.view.pods, created))

    def change(self, pod: PodView, **changes: object) -> None:
        changed = tuple(replace(item, **changes) if item.uid == pod.uid else item for item in self.view.pods)  # type: ignore[arg-type]
        self.view = replace(self.view, pods=changed)

    def remove(self, pod: PodView) -> None:
        self.view = replace(self.view, pods=tuple(item for item in self.view.pods if item.uid != pod.uid))

    def pods(self, work_class: WorkClass, *stages: PodStage) -> list[PodView]:
        return [pod for pod in self.view.pods if pod.work_class is work_class and (not stages or pod.stage in stages)]

    def free_gpus(self, node: str) -> int:
        held = sum(pod.gpus for pod in self.view.pods if pod.node == node and pod.stage is not PodStage.ENDED)
        return next(item.gpus for item in self.view.nodes if item.name == node) - held

    def schedule(self) -> None:
        """Bind what fits, as far as it fits, and let it become ready."""
        for pod in [pod for pod in self.view.pods if pod.stage is PodStage.UNSCHEDULED]:
            fitting = [node.name for node in self.view.nodes if self.free_gpus(node.name) >= pod.gpus]
            if fitting:
                now_s = self.view.now_s
                self.change(
                    pod,
                    node=fitting[0],
                    stage=PodStage.READY,
                    scheduled_at_s=now_s,
                    started_at_s=now_s,
                    ready_at_s=now_s,
                )

    def end_terminating(self) -> None:
        """Let every pod that was asked to go go."""
        for pod in [pod for pod in self.view.pods if pod.stage is PodStage.TERMINATING]:
            self.remove(pod)

    def load_engines(self, streams: int) -> None:
        """Spread streams over the ready engines; all of them answer."""
        engines = self.pods(WorkClass.INFERENCE, PodStage.READY)
        loads = {
            pod.uid: self.make.load(streams // len(engines) + (number < streams % len(engines)))
            for number, pod in enumerate(engines)
        }
        self.view = replace(self.view, loads=loads)


@pytest.fixture
def make() -> Make:
    return Make()


def quiet_world() -> Simulation:
    """Return one engine and three fill workers on four GPUs, in the middle of a quiet time."""
    make = Make()
    engine = make.engine()
    workers = [make.worker(node=node) for node in ("node-0", "node-1", "node-1")]
    world = Simulation(
        make,
        make.view(
            pods=[engine, *workers],
            deployments=[make.deployment(desired=1)],
            jobs=[make.job()],
            loads={engine.uid: make.load(active=1)},
            progress={worker.uid: make.progress(at_risk_s=10.0 + n) for n, worker in enumerate(workers)},
        ),
    )
    world.tick()
    return world


@pytest.fixture(scope="session")
def make_world() -> Callable[[], Simulation]:
    return quiet_world


@pytest.fixture
def simulation(make: Make) -> Simulation:
    """Return a quiet world whose builder is the test's own."""
    world = quiet_world()
    world.make = make
    return world
