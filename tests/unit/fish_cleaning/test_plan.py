"""Plans and the folders they are made from."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fish_cleaning.clip import Item, Reason, Reject
from fish_cleaning.errors import BadInput
from fish_cleaning.locations import folder_of
from fish_cleaning.plan import ensure_plan, from_json, make_plan, to_json
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.source import AudioFolder
from fish_cleaning.steps.chain import StepConfigs
from fish_cleaning.steps.speech import SpeechConfig
from fish_cleaning.store import LocalStore

items = st.builds(
    Item,
    id=st.text("0123456789abcdef", min_size=20, max_size=20),
    name=st.text(max_size=5),
    content=st.just("f" * 64),
    size_bytes=st.integers(0, 100),
)
RECIPE = Recipe(name="quick", units=UnitLimits(max_items=3, max_bytes=120))


@pytest.fixture
def source(tmp_path: Path) -> AudioFolder:
    """Return a folder with three recordings, one of them with a name in no encoding, and a note."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.wav", "deep/a.FLAC", os.fsdecode(b"gr\xfc\xdfe.mp3"), "notes.txt"):
        (folder / name).write_bytes(name.encode(errors="surrogateescape"))
    return AudioFolder(folder)


@given(st.lists(items, unique_by=lambda item: item.id), st.randoms())
def test_each_item_is_in_one_unit_whatever_the_order(planned: list[Item], shuffler: random.Random) -> None:
    plan = make_plan(planned, input_uri="file:///in", recipe=RECIPE)
    assert sorted(item.id for unit in plan.units for item in unit.items) == sorted(item.id for item in planned)
    assert all(len(unit.items) <= 3 for unit in plan.units)
    assert all(sum(item.size_bytes for item in unit.items) <= 120 for unit in plan.units if len(unit.items) > 1)
    shuffled = list(planned)
    shuffler.shuffle(shuffled)
    assert make_plan(shuffled, input_uri="file:///in", recipe=RECIPE) == plan


def test_a_plan_survives_being_written(source: AudioFolder) -> None:
    plan = make_plan(source.items(), input_uri="file:///in", recipe=RECIPE)
    assert from_json(to_json(plan)) == plan


def test_the_ids_of_units_follow_from_content_and_configuration(source: AudioFolder) -> None:
    def unit_ids(recipe: Recipe) -> list[str]:
        return [unit.id for unit in make_plan(source.items(), input_uri="file:///in", recipe=recipe).units]

    before = unit_ids(RECIPE)
    assert unit_ids(RECIPE) == before
    other_steps = StepConfigs(speech=SpeechConfig(min_speech_ratio=0.3))
    assert unit_ids(Recipe(name="quick", steps=other_steps, units=RECIPE.units)) != before
    (source.root / "b.wav").write_bytes(b"other content")
    assert unit_ids(RECIPE) != before


def test_the_first_plan_stays(source: AudioFolder, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "out")
    first = ensure_plan(store, source, RECIPE)
    (source.root / "late.wav").write_bytes(b"late")
    assert ensure_plan(store, source, RECIPE) == first


def test_an_output_of_another_recipe_is_refused_naming_both(source: AudioFolder, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "out")
    ensure_plan(store, source, RECIPE)
    other = Recipe(name="strict", steps=StepConfigs(speech=SpeechConfig(min_speech_ratio=0.9)))
    with pytest.raises(BadInput) as refused:
        ensure_plan(store, source, other)
    for named in ("quick", RECIPE.config_hash, "strict", other.config_hash):
        assert named in str(refused.value)


def test_an_output_of_another_input_is_refused_naming_both(source: AudioFolder, tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "out")
    ensure_plan(store, source, RECIPE)
    with pytest.raises(BadInput, match=r"in, this is file://.*deep"):
        ensure_plan(store, AudioFolder(source.root / "deep"), RECIPE)


def test_a_plan_that_is_none_is_refused(tmp_path: Path, source: AudioFolder) -> None:
    store = LocalStore(tmp_path / "out")
    store.create("plan.json", b'{"units": 3}')
    with pytest.raises(BadInput, match="not a plan"):
        ensure_plan(store, source, RECIPE)


class CarelessStore(LocalStore):
    """Ignores the condition of a write, as some servers do."""

    def create(self, key: str, data: bytes) -> bool:
        """Put a blob over whatever is there."""
        self.replace(key, data)
        return True


def test_storage_on_which_two_can_create_one_name_is_refused(tmp_path: Path, source: AudioFolder) -> None:
    store = CarelessStore(tmp_path / "out")
    with pytest.raises(BadInput, match="created twice; expected storage that honours If-None-Match"):
        ensure_plan(store, source, RECIPE)
    assert store.get("plan.json") is None


def test_an_input_without_recordings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing to hear")
    with pytest.raises(BadInput, match="no recordings"):
        ensure_plan(LocalStore(tmp_path / "out"), AudioFolder(tmp_path), RECIPE)
    with pytest.raises(BadInput, match="no such folder"):
        AudioFolder(tmp_path / "missing").names()


def test_recordings_are_found_by_suffix_at_any_depth(source: AudioFolder) -> None:
    assert source.names() == ["b.wav", "deep/a.FLAC", os.fsdecode(b"gr\xfc\xdfe.mp3")]


def test_a_loop_of_links_and_a_link_to_nowhere_end_the_walk_and_one_item(source: AudioFolder) -> None:
    (source.root / "deep" / "up").symlink_to(source.root)
    (source.root / "gone.wav").symlink_to("nowhere")
    gone = next(item for item in source.items() if item.name == "gone.wav")
    assert source.read(gone) == Reject(reason=Reason.UNREADABLE, detail="No such file or directory")


def test_a_pipe_named_like_a_recording_is_not_waited_for(source: AudioFolder) -> None:
    os.mkfifo(source.root / "pipe.wav")
    pipe = next(item for item in source.items() if item.name == "pipe.wav")
    assert source.read(pipe) == Reject(reason=Reason.UNREADABLE, detail="not a regular file")


def test_a_recording_that_grew_since_the_plan_is_rejected(source: AudioFolder) -> None:
    item = source.items()[0]
    assert source.read(item) == b"b.wav"
    with (source.root / item.name).open("ab") as file:
        file.write(b"more")
    outcome = source.read(item)
    assert isinstance(outcome, Reject)
    assert outcome.reason is Reason.CHANGED


@pytest.mark.parametrize(
    ("location", "path"), [("/data/x", "/data/x"), ("file:///data/a%20b", "/data/a b"), ("file://localhost/d", "/d")]
)
def test_a_location_is_a_path_or_a_file_uri(location: str, path: str) -> None:
    assert folder_of(location) == Path(path)


@pytest.mark.parametrize("location", ["s3://bucket/speech", "file://host/data", ""])
def test_another_location_is_refused_by_name(location: str) -> None:
    with pytest.raises(BadInput, match=f"location {location or 'is empty'}.*expected"):
        folder_of(location)
