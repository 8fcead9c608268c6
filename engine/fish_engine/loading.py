"""From folders on disk to an engine that has spoken once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from fish_engine.codec.dac import Codec
from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.codec.weights import load_codec
from fish_engine.engine import CODEC_SLOTS_PER_STREAM, Engine, Event, Finished, FrameRunner, Speech
from fish_engine.errors import BadCheckpoint, EngineError
from fish_engine.gpu.loading import PADDING_PAGES, PAGE_SIZE, graph_decoder, graph_runner
from fish_engine.gpu.runner import buckets_for
from fish_engine.kv_cache import BlockPool, blocks_for
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.config import DualARConfig, read_config
from fish_engine.model.dual_ar import DualAR
from fish_engine.model.prompt import PromptBuilder
from fish_engine.model.sampling import SamplingParams
from fish_engine.model.tokenizer import TOKENIZER_FILE, TextTokenizer
from fish_engine.model.weights import load_model
from fish_engine.runner import Runner
from fish_engine.scheduler import Limits, Scheduler
from fish_engine.telemetry import EngineMetrics

BLOCK_SIZE: Final = 16
_WARM_UP_TEXT: Final = "Ready."
_WARM_UP_FRAMES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """What an engine is built from."""

    checkpoint: Path
    codec: Path
    max_streams: int
    device: str
    cpu_threads: int
    kv_cache_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedEngine:
    """An engine and what prepares its requests."""

    engine: Engine
    model: DualAR
    codec: Codec
    prompts: PromptBuilder


def load_engine(config: EngineConfig, metrics: EngineMetrics) -> LoadedEngine:
    """Load both models, make room for keys and values, and say one sentence.

    Raises:
        BadCheckpoint: files that are missing or do not fit each other.
    """
    torch.set_num_threads(config.cpu_threads)
    device = torch.device(config.device)
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    sizes = read_config(config.checkpoint / "config.json")
    tokenizer = TextTokenizer(config.checkpoint / TOKENIZER_FILE, sizes)
    model = load_model(config.checkpoint, sizes, im_end_id=tokenizer.im_end_id, device=device, dtype=dtype)
    codec = load_codec(config.codec, device=device)
    _check_fit(sizes, codec)
    block_size = BLOCK_SIZE if device.type == "cpu" else PAGE_SIZE
    blocks = _block_count(sizes, config, dtype, block_size)
    limits = Limits(max_running=config.max_streams, block_size=block_size)
    scheduler = Scheduler(limits=limits, pool=BlockPool(blocks))
    store = PagedKeyValues(sizes.slow, blocks=blocks + PADDING_PAGES, block_size=block_size, dtype=dtype, device=device)
    runner, decoder = _machinery(model, store, codec, config.max_streams)
    prompts = PromptBuilder(tokenizer, sizes)
    # The sentence that nobody asked for is counted in metrics that nobody reads.
    rehearsal = Engine(scheduler=scheduler, runner=runner, decoder=decoder, metrics=EngineMetrics())
    _warm_up(rehearsal, prompts)
    engine = Engine(scheduler=scheduler, runner=runner, decoder=decoder, metrics=metrics)
    return LoadedEngine(engine=engine, model=model, codec=codec, prompts=prompts)


def _machinery(
    model: DualAR, store: PagedKeyValues, codec: Codec, max_streams: int
) -> tuple[FrameRunner, StreamingDecoder]:
    """Return what makes frames and what makes sound of them, as the device of `model` does it best."""
    slots = CODEC_SLOTS_PER_STREAM * max_streams
    if model.device.type == "cpu":
        return Runner(model, store), StreamingDecoder(codec, max_streams=slots)
    buckets = buckets_for(max_streams)
    runner = graph_runner(model, store, max_positions=model.config.slow.max_positions, buckets=buckets)
    return runner, graph_decoder(codec, max_streams=slots)


def _check_fit(sizes: DualARConfig, codec: Codec) -> None:
    if sizes.codebook_count != codec.config.codebooks:
        raise BadCheckpoint(
            f"the model makes {sizes.codebook_count} codebooks, the codec takes {codec.config.codebooks}: "
            "they do not belong together"
        )


def _block_count(sizes: DualARConfig, config: EngineConfig, dtype: torch.dtype, block_size: int) -> int:
    """Return how many cache blocks to make: one full context for each stream, as far as memory goes."""
    bytes_per_block = PagedKeyValues.bytes_per_block(sizes.slow, block_size, dtype)
    per_stream = blocks_for(sizes.slow.max_positions, block_size)
    affordable = int(config.kv_cache_gib * 2**30) // bytes_per_block
    if affordable < per_stream:
        raise BadCheckpoint(
            f"kv_cache_gib {config.kv_cache_gib:g} holds {affordable * block_size} positions, but one stream may need "
            f"{sizes.slow.max_positions}: give it at least {per_stream * bytes_per_block / 2**30:.2g}"
        )
    return min(affordable, per_stream * config.max_streams)


def _warm_up(engine: Engine, prompts: PromptBuilder) -> None:
    """Say a sentence, so that the first client does not pay for what happens only once."""
    events: list[Event] = []
    prompt = prompts.build(_WARM_UP_TEXT)
    engine.add(0, Speech(prompt=prompt, sampling=SamplingParams(), frame_limit=_WARM_UP_FRAMES), events.append)
    while not engine.is_idle:
        engine.step()
    if not isinstance(events[-1], Finished):
        raise EngineError(f"the warm-up sentence did not end: {events[-1]}")
