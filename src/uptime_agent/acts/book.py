"""Which acts hold for which target or group. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from attrs import define, evolve, field, frozen

from .act import Act, ActKind, Scope, ScopeKind, act_id


@frozen(kw_only=True)
class Standing:
    """The acts that hold for one target or group now."""

    acknowledged: Act | None = None
    silenced: Act | None = None
    paused: Act | None = None
    in_maintenance: Act | None = None

    def __iter__(self) -> Iterator[Act]:
        found = (self.paused, self.in_maintenance, self.acknowledged, self.silenced)
        return (act for act in found if act is not None)

    @property
    def text(self) -> str:
        """All of them in words; empty without any."""
        return "; ".join(act.text for act in self)


NOTHING: Final = Standing()

ActsOf = Callable[[str], Standing]
"""Returns the acts that hold now for a target or group."""


def no_acts(_name: str) -> Standing:
    """Where people do nothing."""
    return NOTHING


@frozen
class Known:
    """The names that acts may name. `tags`: of each target. `groups`: members of each group."""

    tags: Mapping[str, frozenset[str]] = field(factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(factory=dict)
    _groups_of: Mapping[str, tuple[str, ...]] = field(init=False)

    @_groups_of.default
    def _by_member(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for group, members in self.groups.items():
            for member in members:
                found[member] = (*found.get(member, ()), group)
        return found

    @property
    def all_tags(self) -> frozenset[str]:
        """The tags of all targets."""
        return frozenset[str]().union(*self.tags.values())

    def scopes_of(self, name: str) -> Iterator[Scope]:
        """The scopes that cover a target or group, the narrowest first."""
        if name in self.tags:
            yield Scope(ScopeKind.TARGET, name)
            yield from (Scope(ScopeKind.GROUP, each) for each in self._groups_of.get(name, ()))
            yield from (Scope(ScopeKind.TAG, each) for each in sorted(self.tags[name]))
        elif name in self.groups:
            yield Scope(ScopeKind.GROUP, name)

    def covered(self, scope: Scope) -> list[str]:
        """The targets in a scope."""
        match scope.kind:
            case ScopeKind.TARGET:
                return [scope.name] if scope.name in self.tags else []
            case ScopeKind.GROUP:
                return [each for each in self.groups.get(scope.name, ()) if each in self.tags]
            case ScopeKind.TAG:
                return [name for name, tags in self.tags.items() if scope.name in tags]


@define
class ActBook:
    """All acts, by the ids of their jobs."""

    known: Known = field(factory=Known)
    _acts: dict[str, Act] = field(factory=dict)

    def __iter__(self) -> Iterator[Act]:
        return iter(list(self._acts.values()))

    def __len__(self) -> int:
        return len(self._acts)

    def put(self, act: Act) -> bool:
        """Keep an act. Returns whether that changed anything."""
        before = self._acts.get(act.id)
        self._acts[act.id] = act
        return before != act

    def drop(self, id: str) -> Act | None:
        """Forget an act."""
        return self._acts.pop(id, None)

    def find(self, kind: ActKind, scope: Scope) -> Act | None:
        """The act of that kind and scope."""
        return self._acts.get(act_id(kind, scope))

    def holding(self, kind: ActKind, name: str, now: float) -> Act | None:
        """Of the acts that cover a target or group, the one that ends last."""
        if not self._acts:
            return None
        found = [self.find(kind, scope) for scope in self.known.scopes_of(name)]
        return _longest(act for act in found if act is not None and act.holds(now))

    def of_target(self, kind: ActKind, name: str, now: float) -> Act | None:
        """The act of exactly this target or group, not of its tags."""
        own = next(iter(self.known.scopes_of(name)), None)
        act = None if own is None else self.find(kind, own)
        return act if act is not None and act.holds(now) else None


def _longest(acts: Iterable[Act]) -> Act | None:
    return max(acts, key=lambda act: math.inf if act.until is None else act.until, default=None)


def settled(act: Act, incident: str | None, began: float) -> Act | None:
    """The acknowledgement of a target that now has this incident, or none. None: it has ended.

    One without an incident is of the incident that was open when it was written.
    """
    if incident is None:
        return None
    if act.incident is not None:
        return act if act.incident == incident else None
    return evolve(act, incident=incident) if began <= act.since else None
