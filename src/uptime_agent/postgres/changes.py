"""Changes between two plans. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from attrs import frozen

K = TypeVar("K")


@frozen
class PlanChanges(Generic[K]):
    """Changed keys of a plan."""

    added: tuple[K, ...] = ()
    changed: tuple[K, ...] = ()
    removed: tuple[K, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def compared(before: Mapping[K, object], after: Mapping[K, object]) -> PlanChanges[K]:
    """Return the changes; equal values are unchanged."""
    return PlanChanges(
        added=tuple(key for key in after if key not in before),
        changed=tuple(key for key, value in after.items() if key in before and before[key] != value),
        removed=tuple(key for key in before if key not in after),
    )
