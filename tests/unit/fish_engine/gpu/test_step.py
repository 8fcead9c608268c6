"""The frame step over fixed buffers, uncompiled and without a GPU: what it says is what the plain runner says, one step later."""

import pytest
import torch

from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.engine import Audio, Engine, Finished, Speech
from fish_engine.gpu.loading import PADDING_PAGES, PAGE_SIZE, graph_runner
from fish_engine.kv_cache import BlockPool
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.sampling import SamplingParams
from fish_engine.model.weights import load_model
from fish_engine.request import FinishReason
from fish_engine.runner import Runner
from fish_engine.scheduler import Limits, Scheduler
from fish_engine.telemetry import EngineMetrics

LINES = (
    ("Hello there.", SamplingParams(temperature=0.0)),
    ("How are you today?", SamplingParams(seed=5)),
    ("One, two, three.", SamplingParams(seed=7, temperature=1.0, top_p=0.9, repetition_penalty=1.2)),
    ("And one more.", SamplingParams(seed=-3)),
)


class Stage:
    """An engine with one of the two runners, and what was heard of each request."""

    def __init__(self, model, codec, make_runner, *, pages=32, prefill_chunk=256):
        store = PagedKeyValues(
            model.config.slow,
            blocks=pages + PADDING_PAGES,
            block_size=PAGE_SIZE,
            dtype=torch.float32,
            device=model.device,
        )
        limits = Limits(max_running=3, block_size=PAGE_SIZE, prefill_chunk=prefill_chunk)
        self.scheduler = Scheduler(limits=limits, pool=BlockPool(pages))
        self.decoder = StreamingDecoder(codec, max_streams=8)
        self.metrics = EngineMetrics()
        runner = make_runner(model, store)
        self.engine = Engine(scheduler=self.scheduler, runner=runner, decoder=self.decoder, metrics=self.metrics)
        self.heard = []

    def say(self, prompt, sampling, frame_limit=40):
        events = []
        self.engine.add(
            len(self.heard), Speech(prompt=prompt, sampling=sampling, frame_limit=frame_limit), events.append
        )
        self.heard.append(events)

    def finish(self):
        while not self.engine.is_idle:
            self.engine.step()
        return [
            (torch.cat([event.samples for event in events if isinstance(event, Audio)]), events[-1])
            for events in self.heard
        ]


def plain(model, store):
    return Runner(model, store)


def ahead(model, store, buckets=(1, 2, 4)):
    return graph_runner(model, store, max_positions=512, buckets=buckets)


def ahead_one_by_one(model, store):
    return ahead(model, store, buckets=(1,))


@pytest.fixture
def own_model(model_folder, config, tokenizer):
    """A model for this test alone, because the step lays its weights out anew."""
    return load_model(
        model_folder, config, im_end_id=tokenizer.im_end_id, device=torch.device("cpu"), dtype=torch.float32
    )


@pytest.fixture
def both(model, own_model, codec):
    def stages(make_runner=ahead, **options):
        return Stage(model, codec, plain, **options), Stage(own_model, codec, make_runner, **options)

    return stages


def assert_same(first, second):
    for (sound, end), (other_sound, other_end) in zip(first.finish(), second.finish(), strict=True):
        assert end.reason == other_end.reason
        assert torch.equal(end.codes, other_end.codes)
        assert torch.equal(sound, other_sound)
    for stage in (first, second):
        assert stage.scheduler.pool.used_count == stage.decoder.open_streams == 0


def test_streams_that_end_or_reach_their_limit_sound_as_with_the_plain_runner(both, prompts):
    stages = both()
    for stage in stages:
        for text, sampling in LINES:
            stage.say(prompts.build(text), sampling)
        stage.say(prompts.build("Short."), SamplingParams(seed=1), frame_limit=1)
    assert_same(*stages)
    assert {events[-1].reason for events in stages[1].heard} == {FinishReason.END, FinishReason.LENGTH}


def test_more_streams_than_the_largest_batch_take_turns_within_a_step(both, prompts):
    stages = both(ahead_one_by_one)
    for stage in stages:
        for text, sampling in LINES[:3]:
            stage.say(prompts.build(text), sampling, frame_limit=6)
    assert_same(*stages)


def test_preempted_streams_go_on_with_frames_that_were_under_way(both, prompts):
    stages = both(pages=3, prefill_chunk=16)
    for stage in stages:
        for letter, (_, sampling) in zip("abcd", LINES, strict=True):
            nearly_a_page = prompts.build(32 * letter)
            assert PAGE_SIZE - 10 < len(nearly_a_page) < PAGE_SIZE
            stage.say(nearly_a_page, sampling, frame_limit=16)
    assert_same(*stages)
    preempted = [stage.metrics.registry.get_sample_value("fish_tts_preempted_total") for stage in stages]
    assert min(preempted) > 0


def test_a_stream_that_is_removed_while_its_frame_is_under_way_leaves_nothing_behind(own_model, codec, prompts):
    stage = Stage(own_model, codec, ahead)
    stage.say(prompts.build("Hello there."), SamplingParams(seed=2))
    stage.say(prompts.build("How are you?"), SamplingParams(temperature=0.0))
    stage.engine.step()
    stage.engine.remove(0)
    while not stage.engine.is_idle:
        stage.engine.step()
    assert stage.heard[0] == []
    assert isinstance(stage.heard[1][-1], Finished)
    assert stage.scheduler.pool.used_count == stage.decoder.open_streams == 0


def test_the_next_step_is_launched_before_a_frame_is_read(own_model, codec, prompts):
    stage = Stage(own_model, codec, ahead)
    stage.say(prompts.build("Hello there."), SamplingParams(seed=2))
    stage.engine.step()
    assert stage.heard[0] == []
    stage.engine.step()
    assert [type(event) for event in stage.heard[0]] == [Audio]
