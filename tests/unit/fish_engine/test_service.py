"""The door to the engine's thread: bounded, fair, and never silent."""

import queue

import pytest

from fish_engine.engine import Audio, Failed, Finished, Speech
from fish_engine.errors import BadRequest, Draining, Overloaded
from fish_engine.loading import EngineConfig, load_engine
from fish_engine.model.sampling import SamplingParams
from fish_engine.service import Service
from fish_engine.telemetry import EngineMetrics


@pytest.fixture
def loaded(model_folder, codec_folder):
    config = EngineConfig(
        checkpoint=model_folder, codec=codec_folder, max_streams=1, device="cpu", cpu_threads=1, kv_cache_gib=1.0
    )
    return load_engine(config, EngineMetrics())


@pytest.fixture
def service(loaded):
    """A service for one stream and one that waits; the test starts it."""
    running = Service(loaded.engine, EngineMetrics(), max_streams=1, max_queued=1)
    yield running
    if running.is_started:
        running.stop()


@pytest.fixture
def hello(loaded):
    def speech(frame_limit=3):
        return Speech(
            prompt=loaded.prompts.build("Hello."), sampling=SamplingParams(temperature=0.0), frame_limit=frame_limit
        )

    return speech


def until_over(events):
    heard = [events.get(timeout=60)]
    while isinstance(heard[-1], Audio):
        heard.append(events.get(timeout=60))
    return heard


def test_a_request_is_heard_to_its_end_and_leaves_no_load(service, hello):
    service.start()
    events = queue.SimpleQueue()
    service.submit(hello(), events.put)
    assert isinstance(until_over(events)[-1], Finished)
    assert (service.load.active, service.load.queued) == (0, 0)


def test_what_does_not_fit_the_queue_is_told_when_to_come_back(service, hello):
    for _ in range(2):
        service.submit(hello(), lambda event: None)
    with pytest.raises(Overloaded) as refusal:
        service.submit(hello(), lambda event: None)
    assert refusal.value.retry_after_s >= 1
    assert service.load.active + service.load.queued == 2


def test_a_draining_service_ends_what_it_has_and_takes_nothing_new(service, hello):
    events = queue.SimpleQueue()
    service.submit(hello(), events.put)
    service.drain()
    with pytest.raises(Draining):
        service.submit(hello(), events.put)
    assert not service.is_drained
    service.start()
    assert isinstance(until_over(events)[-1], Finished)
    assert service.is_drained


def test_a_cancelled_request_makes_room_for_the_next(service, hello):
    waiting, events = queue.SimpleQueue(), queue.SimpleQueue()
    service.submit(hello(400), waiting.put)
    first = service.submit(hello(400), waiting.put)
    service.cancel(first)
    service.cancel(0)
    service.start()
    while service.load.active + service.load.queued:
        pass
    service.submit(hello(), events.put)
    assert isinstance(until_over(events)[-1], Finished)


def test_a_request_beyond_the_cache_is_refused_as_the_clients_mistake(service, hello):
    with pytest.raises(BadRequest, match="longer than this server's memory"):
        service.submit(hello(frame_limit=10_000), lambda event: None)


def test_when_a_step_fails_everybody_is_told_and_nobody_new_is_taken(service, hello):
    running, waiting = queue.SimpleQueue(), queue.SimpleQueue()

    def broken(event):
        running.put(event)
        assert not isinstance(event, Audio), "no more memory"

    service.submit(hello(), broken)
    service.submit(hello(), waiting.put)
    service.start()
    assert isinstance(until_over(running)[-1], Failed)
    assert isinstance(until_over(waiting)[-1], Failed)
    assert service.has_failed
    with pytest.raises(Draining):
        service.submit(hello(), waiting.put)


def test_the_next_part_of_a_speech_is_let_in_when_the_queue_is_full_and_when_it_drains(service, hello):
    events = queue.SimpleQueue()
    for _ in range(2):
        service.submit(hello(), lambda event: None)
    with pytest.raises(Overloaded):
        service.check_door()
    service.submit(hello(), lambda event: None, is_continuation=True)
    service.drain()
    service.submit(hello(), events.put, is_continuation=True)
    service.start()
    assert isinstance(until_over(events)[-1], Finished)


def test_a_service_is_not_drained_between_two_parts(service):
    service.drain()
    with service.held():
        assert not service.is_drained
    assert service.is_drained
