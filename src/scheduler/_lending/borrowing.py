"""Borrowing: units of the fleet's limits, as far as the life of a scheduler has to do with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Borrowing(Protocol):
    """The borrowing of units, as far as others have it begin and end. `sizes`: of the fleet's limits, by name."""

    sizes: dict[str, int]

    def begin(self) -> None:
        """Borrow from now on: the store is open."""

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Tell the others of other sizes of limits that are the fleet's already."""

    def leave(self) -> None:
        """Give everything back, when nothing runs any more. Any thread."""


class NoUnits:
    """The borrowing of a scheduler none of whose limits is the fleet's."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def begin(self) -> None:
        """Do nothing."""

    def resize(self, sizes: Mapping[str, int]) -> None:
        """Do nothing: there are none."""

    def leave(self) -> None:
        """Do nothing."""
