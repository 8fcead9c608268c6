"""Checking this engine against golden vectors: a folder with weights in the published format and the results they must give.

A folder may hold a codec (`codec.pth`), a DualAR model (`model.safetensors`) or both; `golden.safetensors` has the results.
"""

from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fish_engine.codec.dac import Codec
from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.codec.weights import load_codec
from fish_engine.comparison import Comparison, compare
from fish_engine.errors import BadCheckpoint
from fish_engine.model.config import read_config
from fish_engine.model.dual_ar import DualAR, trace
from fish_engine.model.tokenizer import TOKENIZER_FILE, TextTokenizer
from fish_engine.model.weights import load_model

GOLDEN_FILE: Final = "golden.safetensors"
SOUND_TOLERANCE: Final = 1e-5
"""The reference's own streamed and whole decodes differ by 2e-6: float32 sums in another order."""
LOGIT_TOLERANCE: Final = 1e-4
"""A fiftieth of the smallest margin of a greedy choice in the golden vectors."""
_CPU: Final = torch.device("cpu")
CHUNK_SIZES: Final = (1, 2, 3, 7)
"""Frames of the chunks in which a streamed decode is fed, over and over."""


def verify(folder: Path, device: torch.device = _CPU) -> Iterator[Comparison]:
    """Run the golden vectors of `folder` in float32 and yield a comparison for each tensor, as they are done.

    Raises:
        BadCheckpoint: the folder holds no golden vectors, or weights that cannot be loaded.
    """
    golden = _golden(folder / GOLDEN_FILE)
    prompts = sorted(name.removesuffix(".prompt") for name in golden if name.endswith(".prompt"))
    sounds = sorted(name for name in golden if name == "audio" or name.endswith("_audio"))
    if not prompts and not sounds:
        raise BadCheckpoint(
            f"{folder / GOLDEN_FILE}: no golden results; expected `X.prompt` of a model or `audio` of a codec, "
            f"found {sorted(golden)}"
        )
    if sounds:
        yield from _verify_codec(load_codec(folder, device=device), golden, sounds)
    if prompts:
        model = _model(folder, device)
        for prompt in prompts:
            yield from _verify_prompt(model, golden, prompt)


def _golden(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise BadCheckpoint(f"{path}: no such file; golden results are expected beside the weights")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise BadCheckpoint(f"{path}: not a safetensors file: {error}") from error


def _tensor(golden: Mapping[str, Tensor], name: str) -> Tensor:
    if name not in golden:
        raise BadCheckpoint(f"{GOLDEN_FILE}: {name} is missing; found {sorted(golden)}")
    return golden[name]


def _verify_codec(codec: Codec, golden: Mapping[str, Tensor], sounds: list[str]) -> Iterator[Comparison]:
    samples = (0, codec.config.samples_per_frame)
    if "wav" in golden:
        found = codec.encode(golden["wav"][None, None])[0]
        yield compare("codes", expected=_tensor(golden, "codes"), found=found, tolerance=0, step_of=(1, 1))
    for sound in sounds:
        codes = _tensor(golden, sound.removesuffix("audio") + "codes")
        whole = codec.decode(codes[None])[0, 0]
        yield compare(sound, expected=golden[sound], found=whole, tolerance=SOUND_TOLERANCE, step_of=samples)
        # Bit-equality is promised on a CPU; elsewhere the order of a sum is the library's affair.
        tolerance = 0 if whole.device.type == "cpu" else SOUND_TOLERANCE
        streamed = _streamed(codec, codes)
        yield compare(f"{sound} streamed", expected=whole, found=streamed, tolerance=tolerance, step_of=samples)


def _streamed(codec: Codec, codes: Tensor) -> Tensor:
    decoder = StreamingDecoder(codec, max_streams=1)
    slot, pieces = decoder.open(), []
    first, sizes = 0, cycle(CHUNK_SIZES)
    while first < codes.shape[1]:
        chunk = codes[:, first : first + next(sizes)]
        pieces.append(decoder.decode({slot: chunk})[slot])
        first += chunk.shape[1]
    return torch.cat(pieces)


def _model(folder: Path, device: torch.device) -> DualAR:
    config = read_config(folder / "config.json")
    tokenizer = TextTokenizer(folder / TOKENIZER_FILE, config)
    return load_model(folder, config, im_end_id=tokenizer.im_end_id, device=device, dtype=torch.float32)


def _verify_prompt(model: DualAR, golden: Mapping[str, Tensor], name: str) -> Iterator[Comparison]:
    """Compare the logits of a prompt's first steps, and the greedy choice at every step of its continuation.

    Each choice is made after the expected ones before it, so a wrong choice is reported once and where it happened.
    """
    frames = _tensor(golden, f"{name}.frames")
    prompt = _tensor(golden, f"{name}.prompt")
    slow, fast = trace(model, prompt.t().to(model.device), frames.t().to(model.device))
    for part, logits in (("slow_logits", slow), ("fast_logits", fast)):
        expected = _tensor(golden, f"{name}.{part}")
        found = logits[: len(expected)]
        yield compare(f"{name}.{part}", expected=expected, found=found, tolerance=LOGIT_TOLERANCE, step_of=(0, 1))
    chosen = _greedy_columns(model, slow, fast)
    yield compare(f"{name}.frames", expected=frames, found=chosen, tolerance=0, step_of=(1, 1))


def _greedy_columns(model: DualAR, slow: Tensor, fast: Tensor) -> Tensor:
    """Return the columns [1 + codebooks, F] that greedy decoding takes from logits of F steps."""
    config = model.config
    allowed = torch.cat(
        (slow[:, config.semantic_begin_id : config.semantic_end_id + 1], slow[:, model.im_end_id, None]), dim=1
    )
    ids = model.main_ids(allowed.argmax(1))  # [F]
    later_codes = fast[:, 1:].argmax(2)  # [F, codebooks - 1]
    return torch.cat((ids[None], model.first_codes(ids)[None], later_codes.t()))
