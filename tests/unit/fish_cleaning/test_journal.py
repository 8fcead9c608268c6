"""The journal: what was written whole is read back, what was torn never happened."""

from hypothesis import given
from hypothesis import strategies as st

from fish_cleaning.clip import Cleaned, Reason, Reject
from fish_cleaning.journal import Attempted, Entry, Finished, JournalWriter, entries_of, history_of, to_frame

texts = st.text(max_size=20)
items = st.text("0123456789abcdef", min_size=1, max_size=4)
durations_s = st.floats(0, 1e4)
results = st.one_of(
    st.builds(Reject, reason=st.sampled_from(Reason), detail=texts, duration_s=durations_s),
    st.builds(Cleaned, metadata_json=texts, flac=st.binary(max_size=50), duration_s=durations_s),
)
entries = st.one_of(
    st.builds(Attempted, item_id=items),
    st.builds(Finished, item_id=items, result=results),
)


class RecordingFile:
    """An append-only file that remembers when it was made durable."""

    def __init__(self, *, outlives_writer: bool = True) -> None:
        self.outlives_writer = outlives_writer
        self.content = b""
        self.synced_content: list[bytes] = []

    def append(self, data: bytes) -> None:
        self.content += data

    def sync(self) -> None:
        self.synced_content.append(self.content)

    def close(self) -> None:
        pass


@given(st.lists(entries, max_size=6), st.data())
def test_a_journal_cut_at_any_byte_gives_back_every_whole_entry(written: list[Entry], data: st.DataObject) -> None:
    frames = [to_frame(entry) for entry in written]
    journal = b"".join(frames)
    cut = data.draw(st.integers(0, len(journal)))
    whole = 0
    while whole < len(frames) and sum(map(len, frames[: whole + 1])) <= cut:
        whole += 1
    assert entries_of(journal[:cut]) == written[:whole]


@given(st.lists(entries, min_size=1, max_size=4), st.data())
def test_a_damaged_byte_ends_the_journal_before_its_entry(written: list[Entry], data: st.DataObject) -> None:
    frames = [to_frame(entry) for entry in written]
    position = data.draw(st.integers(0, sum(map(len, frames)) - 1))
    damaged = bytearray(b"".join(frames))
    damaged[position] ^= 0x40
    damaged_entry = next(n for n in range(len(frames)) if position < sum(map(len, frames[: n + 1])))
    assert entries_of(bytes(damaged))[:damaged_entry] == written[:damaged_entry]
    assert len(entries_of(bytes(damaged))) <= damaged_entry


def test_a_hole_left_by_a_power_cut_is_the_end() -> None:
    frame = to_frame(Attempted(item_id="a"))
    assert entries_of(frame + bytes(4096) + frame) == [Attempted(item_id="a")]


def test_an_item_that_began_and_never_ended_is_a_broken_attempt_of_its_epoch() -> None:
    done = Finished(item_id="a", result=Reject(reason=Reason.CLIPPED, detail=""))
    journal = b"".join(map(to_frame, [Attempted(item_id="a"), done, Attempted(item_id="b")]))
    history = history_of([journal, to_frame(Attempted(item_id="b"))])
    assert dict(history.broken_attempts) == {"b": 2}
    assert set(history.results) == {"a"}


def test_the_first_result_of_an_item_counts() -> None:
    first = Reject(reason=Reason.CLIPPED, detail="first")
    second = Reject(reason=Reason.CLIPPED, detail="second")
    journals = [to_frame(Finished(item_id="a", result=result)) for result in (first, second)]
    assert history_of(journals).results["a"] == first


def test_entries_are_durable_after_a_quarter_of_a_second() -> None:
    file = RecordingFile()
    journal = JournalWriter(file, now_s=10.0)
    journal.append(Attempted(item_id="a"), now_s=10.1)
    assert not journal.is_synced
    journal.append(Attempted(item_id="b"), now_s=10.26)
    assert journal.is_synced
    assert file.synced_content == [file.content]


def test_no_more_than_64_entries_are_at_risk() -> None:
    file = RecordingFile()
    journal = JournalWriter(file, now_s=0.0)
    for _ in range(64):
        journal.append(Attempted(item_id="a"), now_s=0.0)
    assert file.synced_content == [file.content]


def test_an_attempt_is_durable_before_its_work_where_a_dead_process_takes_its_memory_along() -> None:
    file = RecordingFile(outlives_writer=False)
    journal = JournalWriter(file, now_s=0.0)
    journal.append(Attempted(item_id="a"), now_s=0.0)
    journal.append(Finished(item_id="a", result=Reject(reason=Reason.CLIPPED, detail="")), now_s=0.0)
    assert not journal.is_synced
    journal.append(Attempted(item_id="b"), now_s=0.0)
    assert file.synced_content[-1] == file.content
    assert len(file.synced_content) == 2
