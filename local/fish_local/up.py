"""Brings the cluster of a state folder up or down, whatever state the folder is in."""

import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from fish_local import access, build, processes, state
from fish_local.api import ApiServer
from fish_local.components import Blueprint
from fish_local.errors import DifferentCluster, LocalError
from fish_local.launch import Launcher, stop_everything, write_files
from fish_local.layout import Layout
from fish_local.network import choose_network, listeners_of_this_machine, moved_ports
from fish_local.pki import Pki
from fish_local.processes import MARK, ProcessId
from fish_local.progress import Narrator
from fish_local.shape import ImageCommand, Shape, fish_tts_images
from fish_local.state import Absent, ClusterRecord, Running, Stale, Verdict, Wounded


def bring_up(
    layout: Layout, *, shape: Shape | None, images: Mapping[str, ImageCommand], narrator: Narrator
) -> ClusterRecord:
    """Start a cluster, mend it, or leave it be; `shape` None means the one that is there, or two nodes with two GPUs.

    Raises:
        LocalError: it cannot be started; the message says what was found and what to do.
    """
    if sys.platform != "linux":
        raise LocalError(f"a cluster needs Linux, where every address of 127.0.0.0/8 is there; this is {sys.platform}")
    verdict = look_at(layout)
    if isinstance(verdict, Running | Wounded) and shape not in (None, verdict.record.shape):
        raise DifferentCluster(
            f"a cluster of {verdict.record.shape} runs in {layout.root}, not one of {shape}: "
            f"stop it first with `fish-local down`, or use another folder with --state"
        )
    if isinstance(verdict, Running | Wounded) and images:
        write_images(layout, images)
    match verdict:
        case Running(record=record):
            narrator.say(f"the cluster in {layout.root} is already up ({record.shape})")
            return record
        case Wounded(record=record, dead=dead):
            narrator.say(f"{', '.join(dead)} had died: starting again beside the rest of the cluster")
            return revive(layout, record, dead)
        case Stale(record=record, reason=reason):
            narrator.say(f"{layout.root} holds the rest of an earlier cluster ({reason}): clearing it away")
            clear_away(layout)
            return _create(layout, shape or record.shape, images, narrator)
        case Absent():
            return _create(layout, shape or Shape(), images, narrator)
        case _:
            assert_never(verdict)


def look_at(layout: Layout) -> Verdict:
    """Tell what the state folder holds."""
    record = state.read(layout.state)
    boot_id = processes.boot_id()
    alive = {name for name, process in _processes(record, boot_id).items() if processes.is_alive(process)}
    return state.assess(record, boot_id=boot_id, alive=alive)


def clear_away(layout: Layout) -> list[ProcessId]:
    """Stop all that runs for this state folder and forget it, but keep the logs; return what had to be killed."""
    record = state.read(layout.state)
    killed = stop_everything(layout, _processes(record, processes.boot_id()))
    layout.state.unlink(missing_ok=True)
    return killed


def revive(layout: Layout, record: ClusterRecord, dead: tuple[str, ...]) -> ClusterRecord:
    """Start dead components again, with the same addresses and data."""
    launcher = Launcher(blueprint(layout, record), record)
    with connection(layout, record) as api:
        launcher.start(dead)
        launcher.wait_until_ready(dead, api)
    return launcher.record


def connection(layout: Layout, record: ClusterRecord) -> ApiServer:
    """Return the administrator's connection to the API server."""
    authority = Pki(folder=layout.pki).authority
    return ApiServer(url=record.network.api_server, authority=authority, token=record.token)


def write_images(layout: Layout, images: Mapping[str, ImageCommand]) -> None:
    """Replace the table of images by fish-tts' own and these; nodes see it at once."""
    # The mark in every pod's environment is how `down` finds its processes, whatever became of its node.
    table = access.image_table({**fish_tts_images(), **images}, environment={MARK: str(layout.root)})
    draft = layout.images.with_suffix(".draft")
    draft.write_text(table)
    draft.replace(layout.images)


def _create(layout: Layout, shape: Shape, images: Mapping[str, ImageCommand], narrator: Narrator) -> ClusterRecord:
    binary = build.ensure_built(narrator, build.CLUSTER_BINARY)[build.CLUSTER_BINARY]
    started_s = time.monotonic()
    _forget_the_last_cluster(layout)
    network = choose_network(listeners_of_this_machine(), seed=str(layout.root))
    for line in moved_ports(network):
        narrator.say(line)
    record = ClusterRecord(
        boot_id=processes.boot_id(), is_complete=False, shape=shape, network=network, binary=str(binary), token=""
    )
    plan = blueprint(layout, record)
    token = write_files(plan)
    write_images(layout, images)
    launcher = Launcher(plan, replace(record, token=token))
    try:
        with connection(layout, launcher.record) as api:
            _launch(launcher, api, shape)
    except BaseException:  # Ctrl-C included: a start that failed leaves its logs and nothing else
        clear_away(layout)
        raise
    narrator.say(f"ready after {time.monotonic() - started_s:.1f} s ({shape})")
    return launcher.record


def _forget_the_last_cluster(layout: Layout) -> None:
    """Remove what an earlier cluster left, by name: the folder may hold things of other people."""
    for folder in (layout.etcd_data, layout.pki, layout.access, layout.nodes, layout.logs):
        shutil.rmtree(folder, ignore_errors=True)


def _launch(launcher: Launcher, api: ApiServer, shape: Shape) -> None:
    """Start everything in two waves: within a wave, parts that need each other keep trying."""
    launcher.remember(launcher.record)
    for wave in (shape.component_names[:2], shape.component_names[2:]):
        launcher.start(wave)
        launcher.wait_until_ready(wave, api)
    launcher.wait_until_usable(api)
    launcher.remember(replace(launcher.record, is_complete=True))


def blueprint(layout: Layout, record: ClusterRecord) -> Blueprint:
    """Return what the command lines of a recorded cluster depend on."""
    return Blueprint(shape=record.shape, network=record.network, layout=layout, binary=Path(record.binary))


def _processes(record: ClusterRecord | None, boot_id: str) -> Mapping[str, ProcessId]:
    """Return the recorded processes, unless they are of another boot: then the ids mean somebody else by now."""
    return record.processes if record and record.boot_id == boot_id else {}
