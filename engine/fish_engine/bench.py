"""How fast an engine with random weights of the true sizes makes frames: the real loop, nothing but the text is missing.

Streams start together, have prompts of equal length and draw with sampling on. Once all of them speak, windows of a fixed
number of steps are timed; a window ends when its last frame, or its last sample, is on the host.
"""

import platform
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import torch
from torch import Tensor

from fish_engine.codec.config import CodecConfig
from fish_engine.codec.streaming import Decoded, StreamingDecoder
from fish_engine.engine import CODEC_SLOTS_PER_STREAM, Audio, Engine, Event, FrameRunner, Speech
from fish_engine.errors import EngineError
from fish_engine.gpu.loading import PADDING_PAGES, PAGE_SIZE, graph_decoder, graph_runner
from fish_engine.gpu.runner import BUCKETS
from fish_engine.kv_cache import BlockPool, blocks_for
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.config import DualARConfig
from fish_engine.model.dual_ar import DualAR
from fish_engine.model.sampling import SamplingParams
from fish_engine.random_weights import S2, S2_IM_END_ID, random_codec, random_model
from fish_engine.scheduler import Limits, Scheduler
from fish_engine.telemetry import EngineMetrics

S2_CODEC: Final = CodecConfig()
PROMPT_POSITIONS: Final = 384
WARM_UP_STEPS: Final = 48
"""Prefills, growing chunks of the codec, and the first full ones."""
WINDOW_STEPS: Final = 80
"""A multiple of the codec's largest chunk, so that each window has its share of codec work."""
WINDOWS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Frames a second over all streams, window by window."""

    median: float
    windows: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One number of streams."""

    concurrency: int
    frames_per_s: Rates
    frames_to_pcm_per_s: Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is measured; small on a CPU, where only the way is tried out."""

    model: DualARConfig = S2
    im_end_id: int = S2_IM_END_ID
    codec: CodecConfig = S2_CODEC
    prompt_positions: int = PROMPT_POSITIONS
    warm_up_steps: int = WARM_UP_STEPS
    window_steps: int = WINDOW_STEPS
    windows: int = WINDOWS

    @property
    def frames(self) -> int:
        """Frames of one stream in one run; a stream never ends within it."""
        return self.warm_up_steps + self.windows * self.window_steps + 1

    @property
    def pages(self) -> int:
        """Pages that one stream needs."""
        return blocks_for(self.prompt_positions + self.frames, PAGE_SIZE)


class MuteDecoder(StreamingDecoder):
    """Takes frames and makes no sound of them: what is left is the cost of the frames themselves."""

    def launch(self, chunks: Mapping[int, Tensor]) -> Decoded:
        """Count the frames as decoded."""
        for slot, codes in chunks.items():
            self._frames_decoded[slot] += codes.shape[1]
        return Decoded({slot: torch.empty(0) for slot in chunks})


class Bench:
    """A model of random weights and all that runs it, made once for every number of streams."""

    def __init__(self, shape: Shape, *, concurrency: Sequence[int], device: torch.device) -> None:
        torch.manual_seed(0)
        self.shape = shape
        self._device = device
        is_cpu = device.type == "cpu"
        dtype = torch.float32 if is_cpu else torch.bfloat16
        self._model = random_model(shape.model, im_end_id=shape.im_end_id, device=device, dtype=dtype)
        self._pool_pages = shape.pages * max(concurrency)
        self._runner = self._new_runner(concurrency)
        codec = random_codec(shape.codec, device=device)
        self._mute = MuteDecoder(codec, max_streams=CODEC_SLOTS_PER_STREAM * max(concurrency))
        self._decoder = graph_decoder(codec, max_streams=CODEC_SLOTS_PER_STREAM * max(concurrency))

    def measure(self, concurrency: int) -> Result:
        """Run so many streams without their sound and with it."""
        return Result(
            concurrency=concurrency,
            frames_per_s=self._rates(concurrency, self._mute, counts_sound=False),
            frames_to_pcm_per_s=self._rates(concurrency, self._decoder, counts_sound=True),
        )

    def _new_runner(self, concurrency: Sequence[int]) -> FrameRunner:
        config, device = self.shape.model, self._device
        store = PagedKeyValues(
            config.slow,
            blocks=self._pool_pages + PADDING_PAGES,
            block_size=PAGE_SIZE,
            dtype=self._model.dtype,
            device=device,
        )
        needed = {next((size for size in BUCKETS if size >= streams), BUCKETS[-1]) for streams in concurrency}
        positions = self.shape.pages * PAGE_SIZE
        return graph_runner(self._model, store, max_positions=positions, buckets=sorted(needed))

    def _rates(self, concurrency: int, decoder: StreamingDecoder, *, counts_sound: bool) -> Rates:
        run = Run(self._engine(concurrency, decoder), self.shape, self._model)
        run.start(concurrency)
        run.step(self.shape.warm_up_steps)
        windows = []
        for _ in range(self.shape.windows):
            before, started_at_s = run.frames(counts_sound=counts_sound), time.perf_counter()
            run.step(self.shape.window_steps)
            took_s = time.perf_counter() - started_at_s
            windows.append((run.frames(counts_sound=counts_sound) - before) / took_s)
        run.end()
        return Rates(median=statistics.median(windows), windows=tuple(windows))

    def _engine(self, concurrency: int, decoder: StreamingDecoder) -> "tuple[Engine, EngineMetrics]":
        limits = Limits(max_running=concurrency, block_size=PAGE_SIZE)
        scheduler = Scheduler(limits=limits, pool=BlockPool(self._pool_pages))
        metrics = EngineMetrics()
        return Engine(scheduler=scheduler, runner=self._runner, decoder=decoder, metrics=metrics), metrics


class Run:
    """Streams of one measurement. One that ends of itself is followed by another, so that their number stays."""

    def __init__(self, engine: tuple[Engine, EngineMetrics], shape: Shape, model: DualAR) -> None:
        self._engine, self._metrics = engine
        self._shape = shape
        self._model = model
        self._next_id = 0
        self._samples = 0

    def start(self, streams: int) -> None:
        """Begin so many streams."""
        for _ in range(streams):
            self._add()

    def step(self, steps: int) -> None:
        """Turn the loop."""
        for _ in range(steps):
            self._engine.step()

    def frames(self, *, counts_sound: bool) -> float:
        """Return how many frames there are so far: drawn, or turned into sound that is on the host."""
        if counts_sound:
            return self._samples / self._shape.codec.samples_per_frame
        drawn = self._metrics.registry.get_sample_value("fish_tts_frames_total")
        assert drawn is not None
        return drawn

    def end(self) -> None:
        """Give up all streams."""
        for request_id in range(self._next_id):
            self._engine.remove(request_id)
        self._engine.step()

    def _add(self) -> None:
        shape = self._shape
        prompt = torch.zeros(shape.prompt_positions, shape.model.column_rows, dtype=torch.int64)
        prompt[:, 0] = torch.randint(0, shape.im_end_id, (shape.prompt_positions,))
        sampling = SamplingParams(seed=self._next_id)
        speech = Speech(prompt=prompt, sampling=sampling, frame_limit=shape.frames)
        request_id, self._next_id = self._next_id, self._next_id + 1
        self._engine.add(request_id, speech, self._hear)

    def _hear(self, event: Event) -> None:
        if isinstance(event, Audio):
            self._samples += len(event.samples)
        else:
            self._add()


def report(results: Sequence[Result], shape: Shape, device: torch.device) -> dict[str, object]:
    """Return what was measured, and on what."""
    return {
        "model": "random weights of the true S2 shape, bf16; codec convolutions bf16, the rest of it TF32",
        "prompt_positions": shape.prompt_positions,
        "window_steps": shape.window_steps,
        "sampling": asdict(SamplingParams()),
        "environment": _environment(device),
        "results": [asdict(result) for result in results],
    }


def parsed_concurrency(text: str) -> tuple[int, ...]:
    """Return the numbers in "1,16,64"; raise EngineError for anything else."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise EngineError(f"concurrency {text!r}: expected numbers of streams with commas, such as 1,16,64") from error
    if not all(1 <= number <= BUCKETS[-1] for number in numbers):
        raise EngineError(f"concurrency {text!r}: expected numbers from 1 to {BUCKETS[-1]}")
    return numbers


def _environment(device: torch.device) -> dict[str, object]:
    common: dict[str, object] = {"python": platform.python_version(), "torch": torch.__version__}
    if device.type == "cpu":
        return {**common, "device": "cpu"}
    return {
        **common,
        "device": torch.cuda.get_device_name(device),
        "cuda": torch.version.cuda,
        "clocks": _nvidia_smi("driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw"),
        "memory_gib": round(torch.cuda.max_memory_allocated(device) / 2**30, 1),
    }


def _nvidia_smi(fields: str) -> str:
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"unknown: {error}"
