"""Who holds which block of the key-value cache. Only numbers: the memory itself belongs to the model."""

from collections.abc import Collection, Iterable


def blocks_for(positions: int, block_size: int) -> int:
    """Return how many blocks hold so many positions."""
    return -(-positions // block_size)


class BlockPool:
    """The blocks that nobody holds, in the order in which they will be handed out."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = dict.fromkeys(range(total))

    @property
    def free(self) -> Collection[int]:
        """Blocks that may be handed out, first one first; a view, not a copy."""
        return self._free.keys()

    @property
    def used_count(self) -> int:
        """How many blocks are held by requests."""
        return self.total - len(self._free)

    def take(self, blocks: Iterable[int]) -> None:
        """Hand out these free blocks."""
        for block in blocks:
            del self._free[block]

    def give_back(self, blocks: Iterable[int]) -> None:
        """Take back blocks that were handed out."""
        for block in blocks:
            assert 0 <= block < self.total
            assert block not in self._free, f"block {block} was given back twice"
            self._free[block] = None
