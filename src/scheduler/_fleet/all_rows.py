"""All jobs of a shared store, a node's own first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from .._restore import Chunk, Rows
from ..stores import Sharing, StoreError


class AllRows:
    """Lists of jobs. After a failure the next list starts again, without jobs already seen."""

    def __init__(self, sharing: Sharing, ours: Sequence[int]) -> None:
        self._load: Callable[[], Rows] = lambda: chain(sharing.load(ours), sharing.load_others(ours))
        self._rows: Rows = self._load()
        self._seen: set[str] = set()
        self._is_anew = False

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Chunk:
        try:
            chunk = next(self._rows)
        except StoreError:
            self._rows, self._is_anew = self._load(), True
            raise
        if self._is_anew:
            chunk = [each for each in chunk if each[0].id not in self._seen]
        self._seen.update(row.id for row, _ in chunk)
        return chunk
