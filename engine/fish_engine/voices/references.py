"""Recordings to codes, each once.

Clients send the same recordings with every request, and to encode one costs more than to speak a sentence.
"""

import hashlib
import tempfile
import threading
from collections import OrderedDict
from concurrent.futures import Future
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from fish_engine.audio.reference import read_reference
from fish_engine.codec.dac import Codec

KEPT: Final = 256
"""Recordings whose codes are kept: 50 kB each at half a minute."""


_SMALL_TENSOR: Final = 100_000


class ReferenceEncoder:
    """Codes of recordings, by content. Safe for several threads: those that want the same recording wait for one encode."""

    def __init__(self, codec: Codec, *, folder: Path | None = None, kept: int = KEPT) -> None:
        """Keep `kept` in memory, and all of them in `folder`, where a later process finds them."""
        self._codec = codec
        self._kept = kept
        # Another codec has other codes for the same recording.
        self._folder = folder and folder / _fingerprint(codec)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._codes: OrderedDict[bytes, Future[Tensor]] = OrderedDict()

    def codes(self, recording: bytes) -> Tensor:
        """Return the codes [codebooks, frames] of a recording in any format that `read_reference` knows.

        Raises:
            BadRequest: it cannot be read; this is not remembered.
        """
        key = hashlib.sha256(recording).digest()
        with self._lock:
            known = self._codes.get(key)
            if known is not None:
                self._codes.move_to_end(key)
            else:
                mine = self._codes[key] = Future[Tensor]()
                self._forget_oldest()
        return known.result() if known is not None else self._encode(key, recording, mine)

    def _forget_oldest(self) -> None:
        while len(self._codes) > self._kept:
            self._codes.popitem(last=False)

    def _encode(self, key: bytes, recording: bytes, promise: Future[Tensor]) -> Tensor:
        try:
            codes = self._stored(key)
            if codes is None:
                samples = read_reference(recording, sample_rate_hz=self._codec.config.sample_rate_hz)
                codes = self._codec.encode(torch.from_numpy(samples)[None, None])[0]
                self._store(key, codes)
        except BaseException as error:
            with self._lock:
                self._codes.pop(key, None)
            promise.set_exception(error)
            raise
        promise.set_result(codes)
        return codes

    def _stored(self, key: bytes) -> Tensor | None:
        """Return codes that an earlier process has made; a file that cannot be read is as good as none."""
        if self._folder is None:
            return None
        try:
            return torch.from_numpy(np.load(self._folder / f"{key.hex()}.npy"))
        except (OSError, ValueError, EOFError):
            return None

    def _store(self, key: bytes, codes: Tensor) -> None:
        """Write codes aside and move them into place, so that no file is half a file."""
        if self._folder is None:
            return
        with tempfile.NamedTemporaryFile(dir=self._folder, delete=False) as draft:
            np.save(draft, codes.cpu().numpy())
        Path(draft.name).replace(self._folder / f"{key.hex()}.npy")


def _fingerprint(codec: Codec) -> str:
    """Return what tells this codec from others: its sizes, and the small tensors that its codes depend on."""
    digest = hashlib.sha256(repr(codec.config).encode())
    for name, tensor in sorted(codec.state_dict().items()):
        if name.startswith("quantizer.") and tensor.numel() <= _SMALL_TENSOR:
            digest.update(tensor.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]
