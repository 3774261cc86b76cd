"""Who changed what, in a dict: the shortest form of `MadeChanges`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import nlargest
from typing import Protocol

from .._rows import Retention, StoredChange


class Rows(Protocol):
    made: dict[int, StoredChange]


class MemoryChanges:
    """`rows` has the changes by number."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def read(
        self, *, scope: str | None = None, actor: str | None = None, limit: int = 100, before_us: int | None = None
    ) -> list[StoredChange]:
        """See MadeChanges."""
        return latest(list(self._rows.made.values()), scope=scope, actor=actor, limit=limit, before_us=before_us)


def latest(
    changes: Iterable[StoredChange], *, scope: str | None, actor: str | None, limit: int, before_us: int | None
) -> list[StoredChange]:
    """Return the changes that are asked for, latest first."""
    asked = (
        each
        for each in changes
        if scope in {None, each.scope} and actor in {None, each.actor} and (before_us is None or each.at_us < before_us)
    )
    return nlargest(limit, asked, key=_place)


def over(changes: Collection[StoredChange], retention: Retention, now_us: int) -> list[int]:
    """Return the numbers of changes over the bounds."""
    kept = latest(changes, scope=None, actor=None, limit=retention.changes or len(changes), before_us=None)
    if retention.age is not None:
        kept = [each for each in kept if now_us - each.at_us <= retention.age * 1e6]
    numbers = {each.number for each in kept}
    return [each.number for each in changes if each.number not in numbers]


def _place(change: StoredChange) -> tuple[int, int]:
    return change.at_us, change.number
