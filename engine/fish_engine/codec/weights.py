"""Loading `codec.pth`: published names in, a codec ready to run out, or one error that names every tensor that is wrong."""

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from fish_engine.codec.config import read_codec_config
from fish_engine.codec.dac import Codec
from fish_engine.codec.layers import Layer
from fish_engine.errors import BadCheckpoint

WEIGHTS_NAME = "codec.pth"


def load_codec(path: Path, *, device: torch.device | str = "cpu") -> Codec:
    """Return the codec of a folder that holds `codec.pth`, or of the file itself, in float32.

    Tensors beyond those of the architecture are ignored: the published file carries a training-only module.
    """
    file = path / WEIGHTS_NAME if path.is_dir() else path
    config = read_codec_config(file.parent)
    tensors = published_tensors(file)
    with torch.device("meta"):
        codec = Codec(config)
    faults = list(_faults(codec, tensors))
    if faults:
        raise BadCheckpoint(f"{file}: {len(faults)} tensors do not fit:\n  " + "\n  ".join(faults))
    for prefix, layer in _layers(codec):
        layer.take(
            {name: tensors[prefix + name].to(device=device, dtype=torch.float32) for name in layer.published_shapes()}
        )
    return codec.eval()


def published_tensors(file: Path) -> dict[str, Tensor]:
    """Return the tensors of the file by published name, without what wraps them."""
    if not file.is_file():
        raise BadCheckpoint(f"{file}: no such file; the codec's weights are expected here")
    try:
        raw = torch.load(file, map_location="cpu", weights_only=True)
    except (OSError, pickle.UnpicklingError, RuntimeError, EOFError, LookupError, TypeError, ValueError) as error:
        # The unpickler trips over foreign bytes in many ways.
        raise BadCheckpoint(f"{file}: not a torch file of plain tensors: {error}") from error
    if isinstance(raw, Mapping) and isinstance(raw.get("state_dict"), Mapping):
        raw = raw["state_dict"]
    if not isinstance(raw, Mapping):
        raise BadCheckpoint(f"{file}: expected a dictionary of tensors, found {type(raw).__name__}")
    tensors = {name: tensor for name, tensor in raw.items() if isinstance(tensor, Tensor)}
    if any("generator" in name for name in tensors):
        return {name.replace("generator.", ""): tensor for name, tensor in tensors.items() if "generator." in name}
    return tensors


def _layers(codec: Codec) -> Iterator[tuple[str, Layer]]:
    for name, module in codec.named_modules():
        if isinstance(module, Layer):
            yield f"{name}.", module


def _faults(codec: Codec, tensors: Mapping[str, Tensor]) -> Iterator[str]:
    for prefix, layer in _layers(codec):
        for name, shape in layer.published_shapes().items():
            found = tensors.get(prefix + name)
            if found is None:
                yield f"{prefix}{name}: missing, expected {list(shape)}"
            elif tuple(found.shape) != shape:
                yield f"{prefix}{name}: expected {list(shape)}, found {list(found.shape)}"
