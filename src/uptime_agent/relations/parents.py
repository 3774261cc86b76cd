"""Parents: targets or groups through which others are reached. A parent that is down excuses all below.

If a group's members are unreachable, their parents are the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from ..standing import TargetStatus
from .judging import was_down


class Asked(Protocol):
    """Groups that may be parents."""

    def members(self, name: str) -> tuple[str, ...]:
        """See `Groups.members`."""

    def was_down(self, name: str, began: float) -> bool:
        """See `Groups.was_down`."""

    def is_blamed(self, name: str) -> bool:
        """See `Groups.is_blamed`."""


class Parents:
    """The parents of targets. `known` looks up targets of any node."""

    def __init__(
        self,
        targets: Mapping[str, TargetStatus],
        groups: Asked | None = None,
        known: Callable[[str], TargetStatus | None] | None = None,
    ) -> None:
        self._targets = targets
        self._known = targets.get if known is None else known
        self._groups = groups
        self._parents: dict[str, tuple[str, ...]] = {}
        self._children: dict[str, list[str]] = {}

    def follow(self, parents: Mapping[str, Sequence[str]]) -> None:
        """Replace all parents, which must have no circle."""
        self._parents = {name: tuple(of) for name, of in parents.items() if of}
        self._children = {}
        for name, of in self._parents.items():
            for parent in of:
                self._children.setdefault(parent, []).append(name)
        for target in self._targets.values():
            target.below = self.below

    def below(self, name: str) -> int:
        """Count targets below one, at any depth. Slow."""
        return len(_reached(name, lambda each: self._children.get(each, ())))

    def above(self, name: str) -> set[str]:
        """Return all targets above one; for a group, its members and theirs."""
        found = _reached(name, lambda each: self._members(each) or self._parents.get(each, ()))
        return {each for each in found if each in self._targets}

    def cause(self, name: str, began: float) -> str | None:
        """The topmost parent that is down, or was at `began` (UTC seconds); or None."""
        found: str | None = None
        parents: Iterable[str] = self._parents.get(name, ())
        while (down := next((each for each in parents if self._was_down(each, began)), None)) is not None:
            found, parents = down, self._above(down)
        return found

    def unchecked(self, name: str, began: float) -> tuple[str, ...]:
        """The parents, or their members, not checked since `began` (UTC seconds)."""
        found: dict[str, None] = {}
        for parent in self._parents.get(name, ()):
            for each in self._members(parent) or (parent,):
                target = self._known(each)
                if target is not None and (target.last_run is None or target.last_run.started.timestamp() < began):
                    found[each] = None
        return tuple(found)

    def _above(self, name: str) -> Iterable[str]:
        members = self._members(name)
        if not members:
            return self._parents.get(name, ())
        if self._groups is None or self._groups.is_blamed(name):
            return ()
        return {parent: None for each in members for parent in self._parents.get(each, ())}

    def _members(self, name: str) -> tuple[str, ...]:
        return () if self._groups is None or name in self._targets else self._groups.members(name)

    def _was_down(self, name: str, began: float) -> bool:
        target = self._known(name)
        if target is None:
            return self._groups is not None and self._groups.was_down(name, began)
        return was_down(target, began)


def _reached(name: str, ways: Callable[[str], Iterable[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(ways(name))
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(ways(each))
    return found


def circle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Find names of which each has the next as a parent."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        ways = [iter((start,))]
        while ways:
            name = next(ways[-1], None)
            if name is None:
                ways.pop()
                if path:
                    done.add(path.popitem()[0])
            elif name in path:
                names = list(path)
                return names[names.index(name) :]
            elif name not in done:
                path[name] = None
                ways.append(iter(parents.get(name, ())))
    return None
