import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fish_local import state
from fish_local.errors import BadRecord, StateBusy
from fish_local.network import Network
from fish_local.processes import ProcessId
from fish_local.shape import CONTROL_PLANE, Shape
from fish_local.state import Absent, ClusterRecord, Running, Stale, Wounded, assess

RECORD = ClusterRecord(
    boot_id="boot",
    is_complete=True,
    shape=Shape(nodes=1, gpus_per_node=2),
    network=Network(block=16, ports={"etcd": 2379}),
    binary="/bin/fish-cluster",
    token="secret",
    processes={"etcd": ProcessId(pid=1, started_ticks=2)},
)
EVERYTHING = {*CONTROL_PLANE, "node-0"}


def test_a_folder_without_a_record_holds_no_cluster() -> None:
    assert assess(None, boot_id="boot", alive=set()) == Absent()


def test_a_cluster_of_which_all_is_alive_runs() -> None:
    assert assess(RECORD, boot_id="boot", alive=EVERYTHING) == Running(record=RECORD)


def test_a_dead_node_can_be_started_again() -> None:
    assert assess(RECORD, boot_id="boot", alive=EVERYTHING - {"node-0"}) == Wounded(record=RECORD, dead=("node-0",))


def test_after_a_restart_of_the_machine_nothing_is_taken_for_alive() -> None:
    verdict = assess(RECORD, boot_id="next boot", alive=EVERYTHING)
    assert isinstance(verdict, Stale)
    assert "restarted" in verdict.reason


def test_a_start_that_was_stopped_half_way_is_recognised() -> None:
    verdict = assess(replace(RECORD, is_complete=False), boot_id="boot", alive=EVERYTHING)
    assert isinstance(verdict, Stale)
    assert "half-way" in verdict.reason


def test_a_cluster_whose_control_plane_is_gone_is_stale() -> None:
    verdict = assess(RECORD, boot_id="boot", alive={"node-0"})
    assert isinstance(verdict, Stale)
    assert "killed" in verdict.reason


def test_a_record_survives_writing_and_reading(tmp_path: Path) -> None:
    state.write(tmp_path / "cluster.json", RECORD)
    assert state.read(tmp_path / "cluster.json") == RECORD


def test_a_record_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    state.write(tmp_path / "cluster.json", RECORD)
    assert (tmp_path / "cluster.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"boot_id": 1})])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(text)
    with pytest.raises(BadRecord, match=str(path)):
        state.read(path)


def test_a_second_command_is_kept_out_and_told_who_is_in(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from fish_local import state\n"
        f"with state.exclusive(Path({str(tmp_path / 'lock')!r})): print('in', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"in\n"
        refused = pytest.raises(StateBusy, match=f"process {holder.pid} is starting or stopping")
        with refused, state.exclusive(tmp_path / "lock"):
            pass
        holder.communicate()
    with state.exclusive(tmp_path / "lock"):
        pass
