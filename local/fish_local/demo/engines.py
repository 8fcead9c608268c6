"""Which engines take streams now, and which of them is least busy.

Services do not route on this cluster: the API server takes no loopback address into an EndpointSlice. Whoever sends traffic
watches pods instead, as the Gateway API's endpoint pickers do.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fish_contracts.labels import WORK_CLASS
from fish_contracts.priority import WorkClass
from fish_contracts.reports import HTTP_PORT
from fish_local.demo.kube import Pod


@dataclass(slots=True)
class EngineDirectory:
    """The ready engines and how many of our own streams each of them carries."""

    _addresses: tuple[str, ...] = ()
    _streams: Counter[str] = field(default_factory=Counter)

    def update(self, pods: Iterable[Pod]) -> None:
        """Take the pods as the API server shows them now."""
        self._addresses = tuple(
            sorted(
                pod.address
                for pod in pods
                if pod.labels.get(WORK_CLASS) == WorkClass.INFERENCE and pod.takes_streams and pod.address
            )
        )

    @property
    def ready(self) -> int:
        """Return how many engines take streams."""
        return len(self._addresses)

    @contextmanager
    def least_busy(self) -> Iterator[str | None]:
        """Lend the base URL of the least busy engine for the length of one stream; None where no engine is ready."""
        if not self._addresses:
            yield None
            return
        address = min(self._addresses, key=lambda one: self._streams[one])
        self._streams[address] += 1
        try:
            yield f"http://{address}:{HTTP_PORT}"
        finally:
            self._streams[address] -= 1
