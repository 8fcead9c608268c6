"""Recordings to codes, each once.

Clients send the same recordings with every request, and to encode one costs more than to speak a sentence.
"""

import hashlib
import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import Final

import torch
from torch import Tensor

from fish_engine.audio.reference import read_reference
from fish_engine.codec.dac import Codec

KEPT: Final = 256
"""Recordings whose codes are kept: 50 kB each at half a minute."""


class ReferenceEncoder:
    """Codes of recordings, by content. Safe for several threads: those that want the same recording wait for one encode."""

    def __init__(self, codec: Codec, *, kept: int = KEPT) -> None:
        self._codec = codec
        self._kept = kept
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
            samples = read_reference(recording, sample_rate_hz=self._codec.config.sample_rate_hz)
            codes = self._codec.encode(torch.from_numpy(samples)[None, None])[0]
        except BaseException as error:
            with self._lock:
                self._codes.pop(key, None)
            promise.set_exception(error)
            raise
        promise.set_result(codes)
        return codes
