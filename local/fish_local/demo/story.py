"""The demo from beginning to end: build, start, install, play, check, report."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fish_local.build import ensure_built
from fish_local.cluster import Cluster
from fish_local.demo.board import Snapshot
from fish_local.demo.picture import draw
from fish_local.demo.play import PATIENCE_S, Outcome, Play
from fish_local.demo.report import Report, percentile
from fish_local.demo.scene import CHART, NAMESPACE, Scene, run_room
from fish_local.demo.stages import StageClock, set_up_s
from fish_local.demo.verdict import Verdict
from fish_local.demo.wave import WAVE, Phase
from fish_local.progress import Narrator


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run may vary."""

    state: Path
    output: Path
    items: int
    wave: Sequence[Phase] = WAVE


def tell(options: Options, narrator: Narrator, show: Callable[[Snapshot], None]) -> Report:
    """Run the whole demo; its results are in `options.output` before it returns. The cluster stays up."""
    clock = StageClock(narrator)
    if (installed_s := set_up_s()) is not None:
        clock.seconds["set_up"] = installed_s
    with clock.stage("build", "Building the cluster and Helm, kept for the next run …"):
        ensure_built(narrator)
    with clock.stage("up", "Starting etcd, API server, scheduler, controller manager and two nodes with 2 GPUs each …"):
        cluster = Cluster.start(options.state, narrator=narrator)
    scene = Scene(root=options.output.resolve(), items=options.items)
    with clock.stage("corpus", f"Cutting {options.items} recordings out of public-domain LibriVox clips …"):
        _forget_earlier_run(cluster)
        scene.prepare()
    with clock.stage("install", "helm install fish-tts helm/fish-tts …"):
        _install(cluster)
    outcome = asyncio.run(_perform(options, cluster, scene, clock, show))
    with clock.stage("check", "Checking the cleaned corpus item by item against its input …"):
        where = ("--input", scene.corpus, "--output", scene.cleaned)
        verdict = Verdict.model_validate_json(run_room("fish_cleaning", "verify", *where, "--json"))
    report = _report(outcome, verdict, clock)
    (scene.root / "report.json").write_text(report.to_json())
    (scene.root / "speech.wav").write_bytes(outcome.speech)
    (scene.root / "gpus.svg").write_text(
        draw(outcome.shots, title="Speech takes GPUs from cleaning and gives them back")
    )
    return report


def _forget_earlier_run(cluster: Cluster) -> None:
    if "ttsdeployments" in cluster.kubectl("get", "crd", "-o", "name"):
        cluster.kubectl("delete", "tts,clean", "--all", "--wait")
        cluster.kubectl("delete", "pods", "--all", "--wait")


def _install(cluster: Cluster) -> None:
    cluster.helm("upgrade", "--install", "fish-tts", str(CHART), "--namespace", NAMESPACE, "--create-namespace")
    cluster.kubectl("--namespace", NAMESPACE, "rollout", "status", "deployment", "--timeout", f"{PATIENCE_S}s")


async def _perform(
    options: Options, cluster: Cluster, scene: Scene, clock: StageClock, show: Callable[[Snapshot], None]
) -> Outcome:
    async with Play.staged(cluster, scene, clock, show) as play:
        return await play.perform(options.wave)


def _report(outcome: Outcome, verdict: Verdict, clock: StageClock) -> Report:
    tally, counters, reclaims = outcome.crowd.tally, outcome.counters, outcome.reclaims
    stages = reclaims[0].stages if reclaims else ()
    return Report(
        scale_ups=counters.scale_ups,
        scale_downs=counters.scale_downs,
        evictions=counters.evictions,
        reclaims=len(reclaims),
        reclaim_s=[round(one.total_seconds, 2) for one in reclaims],
        reclaim_stage_s={stage: [round(one.stages[stage], 2) for one in reclaims] for stage in stages},
        streams_total=tally.finished + tally.cut,
        streams_cut=tally.cut,
        first_audio_s={f"p{percent}": round(percentile(tally.first_audio_s, percent), 3) for percent in (50, 95)},
        items_expected=verdict.items_expected,
        items_committed=verdict.items_committed,
        items_rejected=verdict.items_rejected,
        items_lost=verdict.items_lost,
        items_doubled=verdict.items_doubled,
        work_redone_ratio=verdict.work_redone_ratio,
        gpu_state_seconds=counters.gpu_state_seconds,
        stage_s=clock.seconds,
    )
