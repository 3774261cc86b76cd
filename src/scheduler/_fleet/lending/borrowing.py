"""Borrowing: units of the fleet's limits, as the life of a scheduler needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Borrowing(Protocol):
    """The borrowing of units, from its beginning to its end. `sizes`: of the fleet's limits, by name."""

    sizes: dict[str, int]

    def begin(self) -> None:
        """Borrow from now on: the store is open."""

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Tell the others the new sizes of limits of the fleet."""

    def leave(self) -> None:
        """Give everything back, when nothing runs any more. Any thread."""


class NoUnits:
    """The borrowing of a scheduler without limits of the fleet."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def begin(self) -> None:
        """Do nothing."""

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Do nothing: there are none."""

    def leave(self) -> None:
        """Do nothing."""
