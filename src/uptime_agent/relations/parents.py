"""Parents: targets through which others are reached. A parent that is down excuses all targets below it.

A group may be a parent. It is down with enough of its members. Then the group is the cause, unless its members are
unreachable: then their parents are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from ..targets import TargetStatus
from .judging import was_down


class Asked(Protocol):
    """Groups that may be parents."""

    def members(self, name: str) -> tuple[str, ...]:
        """Return the members of that group; empty: there is no such group."""

    def was_down(self, name: str, began: float) -> bool:
        """Return whether that group is down, or was when a check began at `began` in UTC seconds."""

    def is_blamed(self, name: str) -> bool:
        """Return whether that group itself is at fault, not only the parents of its members."""


class Parents:
    """The parents of targets, and their states. `targets`: all by name, at any time.

    `groups`: possible parents; None: none. `known`: looks up a target of another node; None: there are no other nodes.
    """

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
        """Use these parents of each target; they have no circle."""
        self._parents = {name: tuple(of) for name, of in parents.items() if of}
        self._children = {}
        for name, of in self._parents.items():
            for parent in of:
                self._children.setdefault(parent, []).append(name)
        for target in self._targets.values():
            target.below = self.below

    def below(self, name: str) -> int:
        """The number of targets reached through one, at any depth. It looks at each: call it when telling."""
        return len(_reached(name, lambda each: self._children.get(each, ())))

    def above(self, name: str) -> set[str]:
        """All targets above one, at any depth: of a group, its members and those above them."""
        found = _reached(name, lambda each: self._members(each) or self._parents.get(each, ()))
        return {each for each in found if each in self._targets}

    def cause(self, name: str, began: float) -> str | None:
        """The topmost target or group above `name` that is down. A target that was down when a check began at `began`
        (UTC seconds) counts too. None: none.
        """
        found: str | None = None
        parents: Iterable[str] = self._parents.get(name, ())
        while (down := next((each for each in parents if self._was_down(each, began)), None)) is not None:
            found, parents = down, self._above(down)
        return found

    def unchecked(self, name: str, began: float) -> tuple[str, ...]:
        """The parents of a target that were not checked since an instant, in UTC seconds; of a group, members."""
        found: dict[str, None] = {}
        for parent in self._parents.get(name, ()):
            for each in self._members(parent) or (parent,):
                target = self._known(each)
                if target is not None and (target.last_run is None or target.last_run.started.timestamp() < began):
                    found[each] = None
        return tuple(found)

    def _above(self, name: str) -> Iterable[str]:
        """Targets and groups that may be the cause instead of a target that is down."""
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
    """All names that are reached from one, directly or by others."""
    found: set[str] = set()
    waiting = list(ways(name))
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(ways(each))
    return found


def circle(parents: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Names of which each has the next as a parent, and the last the first. None: no circle."""
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
