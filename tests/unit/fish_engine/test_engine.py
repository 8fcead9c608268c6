"""One turn of the loop after another: what is drawn is what is heard."""

import pytest
import torch

from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.engine import Audio, Engine, Failed, Finished, Speech
from fish_engine.kv_cache import BlockPool
from fish_engine.loading import BLOCK_SIZE
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.sampling import SamplingParams
from fish_engine.request import FinishReason
from fish_engine.runner import Runner
from fish_engine.scheduler import Limits, Scheduler
from fish_engine.telemetry import EngineMetrics

GREEDY = SamplingParams(temperature=0.0)


@pytest.fixture
def parts(model, codec):
    """An engine for two streams at once, and what it holds."""
    store = PagedKeyValues(
        model.config.slow, blocks=64, block_size=BLOCK_SIZE, dtype=torch.float32, device=model.device
    )
    scheduler = Scheduler(limits=Limits(max_running=2, block_size=BLOCK_SIZE), pool=BlockPool(64))
    decoder = StreamingDecoder(codec, max_streams=4)
    engine = Engine(scheduler=scheduler, runner=Runner(model, store), decoder=decoder, metrics=EngineMetrics())
    return engine, scheduler, decoder


def say(engine, request_id, prompt, **speech):
    events = []
    engine.add(request_id, Speech(prompt=prompt, sampling=GREEDY, **{"frame_limit": 40, **speech}), events.append)
    return events


def sound(events):
    return torch.cat([event.samples for event in events if isinstance(event, Audio)])


def test_a_stream_is_the_decoded_golden_frames_without_the_end_mark(parts, codec, golden):
    engine, scheduler, decoder = parts
    events = say(engine, 0, golden["plain.prompt"].T)
    while not engine.is_idle:
        engine.step()
    frames = golden["plain.frames"][1:, :-1]  # the last column is the end mark
    assert torch.equal(sound(events), codec.decode(frames[None])[0, 0])
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is FinishReason.END
    assert torch.equal(events[-1].codes, frames)
    assert scheduler.pool.used_count == decoder.open_streams == 0


def test_the_first_frame_is_heard_after_the_first_step(parts, prompts):
    engine, _, _ = parts
    events = say(engine, 0, prompts.build("Hello."))
    engine.step()
    assert [type(event) for event in events] == [Audio]
    assert len(events[0].samples) == 2048


def test_the_frame_limit_ends_a_stream_with_every_frame_heard(parts, prompts):
    engine, _, _ = parts
    events = say(engine, 0, prompts.build("Hello."), frame_limit=7)
    while not engine.is_idle:
        engine.step()
    assert isinstance(events[-1], Finished)
    assert events[-1].reason is FinishReason.LENGTH
    assert len(sound(events)) == 7 * 2048


def test_a_third_stream_waits_and_is_heard_whole(parts, prompts):
    engine, _, _ = parts
    heard = [say(engine, index, prompts.build("Hello."), frame_limit=5) for index in range(3)]
    engine.step()
    assert [bool(events) for events in heard] == [True, True, False]
    while not engine.is_idle:
        engine.step()
    assert torch.equal(sound(heard[2]), sound(heard[0]))


def test_a_removed_stream_frees_all_it_held_and_hears_nothing_more(parts, prompts):
    engine, scheduler, decoder = parts
    events = say(engine, 0, prompts.build("Hello."))
    engine.step()
    engine.remove(0)
    engine.remove(0)
    assert scheduler.pool.used_count == decoder.open_streams == 0
    heard = len(events)
    engine.step()
    assert len(events) == heard
    assert engine.is_idle


def test_everybody_is_told_when_the_engine_gives_up(parts, prompts):
    engine, scheduler, _ = parts
    heard = [say(engine, index, prompts.build("Hello.")) for index in range(3)]
    engine.step()
    engine.fail_all("out of memory")
    assert [events[-1] for events in heard] == [Failed(message="out of memory")] * 3
    assert engine.is_idle
    assert scheduler.pool.used_count == 0
