"""File descriptors of a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Self

try:
    import resource
except ImportError:  # where there are no such limits
    resource = None  # type: ignore[assignment]

MOST_CONNECTIONS: Final = 100
_SHARE: Final = 4
"""A quarter; checks need the others."""


def most_connections(most: int = MOST_CONNECTIONS) -> int:
    """The most open connections: `most`, or fewer where descriptors are few."""
    if resource is None:
        return most
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if limit < 0 else max(min(most, limit // _SHARE), 1)


class SpareDescriptor:
    """A spare descriptor, to refuse a connection without another."""

    def __init__(self) -> None:
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give()

    @contextmanager
    def lent(self) -> Iterator[bool]:
        """Free the descriptor for the body. Yields whether there was one."""
        is_there = self._descriptor is not None
        self._give()
        try:
            yield is_there
        finally:
            self._take()

    def _take(self) -> None:
        with suppress(OSError):
            self._descriptor = os.open(os.devnull, os.O_RDONLY)

    def _give(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
