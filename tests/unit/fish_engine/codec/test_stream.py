"""When to decode which frames: early sound first, then larger chunks, and never a frame lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fish_engine.codec.stream import Chunk, ChunkPolicy, StreamView, client_lead_s, plan_chunks


def view(
    *, pending: int, decoded: int = 0, is_finished: bool = False, lead_s: float = 10.0, slot: int = 0
) -> StreamView:
    return StreamView(slot=slot, frames_pending=pending, frames_decoded=decoded, is_finished=is_finished, lead_s=lead_s)


def frames_now(stream: StreamView, policy: ChunkPolicy | None = None) -> int:
    return sum(chunk.frames for chunk in plan_chunks([stream], policy or ChunkPolicy()))


def test_a_client_with_sound_to_spare_gets_chunks_that_double() -> None:
    decoded, sizes = 0, []
    while decoded < 80:
        size = frames_now(view(pending=100, decoded=decoded))
        sizes.append(size)
        decoded += size
    assert sizes == [1, 1, 2, 4, 8, 16, 16, 16, 16]


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (view(pending=0), 0),
        (view(pending=1), 1),
        (view(pending=7, decoded=8), 0),
        (view(pending=8, decoded=8), 8),
        (view(pending=3, decoded=8, lead_s=0.05), 3),
        (view(pending=3, decoded=8, lead_s=-1.0), 3),
        (view(pending=3, decoded=8, is_finished=True), 3),
        (view(pending=40, decoded=8, is_finished=True), 16),
        (view(pending=0, decoded=8, is_finished=True), 0),
    ],
    ids=[
        "nothing there",
        "first frame at once",
        "wait for a whole chunk",
        "a whole chunk",
        "the client runs dry",
        "the client has run dry",
        "the rest of a finished stream",
        "a long rest in bounded pieces",
        "nothing left",
    ],
)
def test_what_is_decoded_now(stream: StreamView, frames: int) -> None:
    assert frames_now(stream) == frames


def test_a_larger_first_chunk_is_waited_for() -> None:
    policy = ChunkPolicy(first_frames=4)
    assert frames_now(view(pending=3, lead_s=0.0), policy) == 0
    assert frames_now(view(pending=4, lead_s=0.0), policy) == 4


def test_each_stream_is_planned_by_itself() -> None:
    streams = [view(slot=3, pending=1), view(slot=5, pending=1, decoded=4), view(slot=9, pending=9, decoded=2)]
    assert plan_chunks(streams, ChunkPolicy()) == (Chunk(slot=3, frames=1), Chunk(slot=9, frames=2))


@given(
    arrivals=st.lists(st.tuples(st.integers(0, 5), st.floats(-1, 3)), max_size=60),
    first_frames=st.integers(1, 8),
    more=st.integers(0, 24),
)
def test_every_frame_is_decoded_once_and_no_chunk_is_too_large(
    arrivals: list[tuple[int, float]], first_frames: int, more: int
) -> None:
    policy = ChunkPolicy(first_frames=first_frames, max_frames=first_frames + more)
    pending = decoded = 0
    for arrived, lead_s in arrivals:
        pending += arrived
        chunk = frames_now(view(pending=pending, decoded=decoded, lead_s=lead_s), policy)
        assert 0 <= chunk <= min(pending, policy.max_frames)
        pending, decoded = pending - chunk, decoded + chunk
    while pending:
        chunk = frames_now(view(pending=pending, decoded=decoded, is_finished=True), policy)
        assert 0 < chunk <= policy.max_frames
        pending, decoded = pending - chunk, decoded + chunk
    assert decoded == sum(arrived for arrived, _ in arrivals)


def test_the_lead_is_what_was_sent_less_what_was_played() -> None:
    assert client_lead_s(sound_sent_s=0.0, first_sent_at_s=None, now_s=5.0) == 0.0
    assert client_lead_s(sound_sent_s=2.0, first_sent_at_s=10.0, now_s=10.5) == 1.5
    assert client_lead_s(sound_sent_s=2.0, first_sent_at_s=10.0, now_s=13.0) == -1.0


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"first_frames": 0}, r"from 1 to max_frames \(16\), found 0"),
        ({"first_frames": 17}, "found 17"),
        ({"low_lead_s": -0.1}, "must not be negative, found -0.1"),
        ({"low_lead_s": float("nan")}, "found nan"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(policy: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ChunkPolicy(**policy)
