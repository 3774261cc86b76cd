"""Borrowing units of the fleet's limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Borrowing(Protocol):
    sizes: dict[str, int]

    def begin(self) -> None:
        """Begin to borrow units: the store is open."""

    def resize(self, sizes: Mapping[str, int]) -> None: ...

    def leave(self) -> None:
        """Give everything back, at the end. Any thread."""


class NoUnits:
    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def begin(self) -> None:
        """Do nothing."""

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""
