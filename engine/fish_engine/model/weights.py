"""Reading the published safetensors into a model, and refusing what does not fit by name."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from fish_engine.errors import BadCheckpoint
from fish_engine.model.config import DualARConfig
from fish_engine.model.dual_ar import DualAR

SINGLE_FILE: Final = "model.safetensors"
INDEX_FILE: Final = "model.safetensors.index.json"
_NAMED_IN_ONE_MESSAGE: Final = 8


def load_model(
    folder: Path, config: DualARConfig, *, im_end_id: int, device: torch.device, dtype: torch.dtype
) -> DualAR:
    """Return the model of a checkpoint folder, ready to run.

    Raises:
        BadCheckpoint: no weights, or tensors that are missing, unknown or of another shape, each named.
    """
    with torch.device("meta"):
        model = DualAR(config, im_end_id=im_end_id)
    expected = {published_name(name): parameter.shape for name, parameter in model.named_parameters()}
    tensors = _read_tensors(folder, device)
    _check(folder, expected, tensors)
    state = {name: tensors[published_name(name)].to(dtype) for name, _ in model.named_parameters()}
    model.load_state_dict(state, assign=True)
    return model.to(device).eval().requires_grad_(requires_grad=False)


def published_name(name: str) -> str:
    """Return the name in a published file of one of our parameters."""
    if name.startswith("slow.codebook_embeddings."):
        return name.replace("slow.", "audio_decoder.", 1)  # kept with the decoder, used on the slow side
    if name.startswith("slow."):
        return name.replace("slow.", "text_model.model.", 1)
    return name.replace("fast.", "audio_decoder.", 1)


def _read_tensors(folder: Path, device: torch.device) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for path in _files(folder):
        try:
            with safe_open(path, framework="pt", device=str(device)) as file:
                tensors.update({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118 - not a mapping
        except FileNotFoundError as error:
            raise BadCheckpoint(f"{path} does not exist, but {INDEX_FILE} names it") from error
        except SafetensorError as error:
            raise BadCheckpoint(f"{path} is not a whole safetensors file: {error}") from error
    return tensors


def _files(folder: Path) -> list[Path]:
    index = folder / INDEX_FILE
    if index.exists():
        try:
            names = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise BadCheckpoint(f"{index}: expected an object with weight_map, tensor name to file name") from error
        return [folder / name for name in sorted(set(names))]
    single = folder / SINGLE_FILE
    if single.exists():
        return [single]
    raise BadCheckpoint(f"{folder} has no weights: expected {SINGLE_FILE} or {INDEX_FILE}")


def _check(folder: Path, expected: Mapping[str, torch.Size], found: Mapping[str, Tensor]) -> None:
    faults = [
        f"{name} is missing, expected shape {list(shape)}" for name, shape in expected.items() if name not in found
    ]
    faults += [f"{name} is in no model of this config" for name in found if name not in expected]
    faults += [
        f"{name} has shape {list(found[name].shape)}, expected {list(shape)}"
        for name, shape in expected.items()
        if name in found and found[name].shape != shape
    ]
    if faults:
        more = len(faults) - _NAMED_IN_ONE_MESSAGE
        shown = "; ".join(faults[:_NAMED_IN_ONE_MESSAGE]) + (f"; and {more} more" if more > 0 else "")
        raise BadCheckpoint(f"{folder}: weights do not match config.json: {shown}")
