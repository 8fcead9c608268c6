"""The output as people who train on it read it: by the documented lines, or one recording by its place in the shard."""

import hashlib
import io
import json
import re
from pathlib import Path

import pytest
import soundfile

from fish_cleaning.corpus import make_corpus
from fish_cleaning.locations import open_source, open_store
from fish_cleaning.plan import ensure_plan
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.run import Job, Worker
from fish_cleaning.source import AudioFolder
from fish_cleaning.stopping import StopRequest
from fish_cleaning.tally import Tally

DOCUMENT = Path(__file__).parents[3] / "docs" / "cleaning.md"


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory, speech_folder: Path) -> Path:
    """Return a finished output in a folder `cleaned`, with a shard in it that no commit names."""
    folder = tmp_path_factory.mktemp("reading")
    make_corpus(AudioFolder(speech_folder), folder / "in", items=8, seed=5, cut_s=(1.5, 2.0))
    recipe = Recipe(name="quick", units=UnitLimits(max_items=3))
    store, source = open_store(str(folder / "cleaned")), open_source(str(folder / "in"))
    job = Job(plan=ensure_plan(store, source, recipe), recipe=recipe, source=source, store=store, lease_ttl_s=15.0)
    assert Worker(job, stop=StopRequest(), tally=Tally()).run()
    (folder / "cleaned" / "shards" / "of-a-beaten-worker.tar").write_bytes(b"")
    return folder / "cleaned"


def test_the_documented_lines_load_every_committed_recording(cleaned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(cleaned.parent)
    block = re.search(r"```python\n(.*?WebDataset.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    names: dict[str, object] = {}
    exec(block.group(1), names)  # the documentation is the program under test
    samples = list(names["dataset"])  # type: ignore[call-overload]
    assert len(samples) == json.loads((cleaned / "manifest.json").read_text())["items_committed"] > 0
    for sample in samples:
        sound, rate_hz = soundfile.read(io.BytesIO(sample["flac"]))
        assert rate_hz == 16_000
        assert len(sound) / rate_hz == pytest.approx(json.loads(sample["json"])["duration_s"], abs=0.01)


def test_one_recording_is_read_by_its_place_in_the_shard(cleaned: Path) -> None:
    shard = next(cleaned.glob("shards/*.index.json"))
    members = json.loads(shard.read_text())["members"]
    name = next(name for name in members if name.endswith(".flac"))
    with shard.with_name(shard.name.replace(".index.json", ".tar")).open("rb") as file:

        def member(name: str) -> bytes:
            offset, size = members[name]
            file.seek(offset)
            return file.read(size)

        metadata = json.loads(member(name.replace(".flac", ".json")))
        assert hashlib.sha256(member(name)).hexdigest() == metadata["audio_sha256"]


def test_the_manifest_names_each_shard_with_its_sha256(cleaned: Path) -> None:
    manifest = json.loads((cleaned / "manifest.json").read_text())
    assert manifest["units_committed"] == manifest["units_total"] == 3
    for shard in manifest["shards"]:
        assert hashlib.sha256((cleaned / shard["path"]).read_bytes()).hexdigest() == shard["sha256"]
