"""Targets, as acts of people ask about them and hear of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from ..acts import ActDeps, ActKeeper, Known
from ..checks import PUSH
from ..config import Target
from ..relations import GroupPlan, Here
from ..standing import (
    Checked,
    Closed,
    GroupRecalled,
    Incident,
    Maintenance,
    News,
    Recall,
    Remembered,
    TargetStatus,
    has_instants,
)


class _Groups(Protocol):
    def incident(self, name: str) -> Incident | None:
        """The open incident of a group."""


def act_deps(
    targets: Mapping[str, TargetStatus],
    groups: _Groups,
    here: Here,
    recall: Recall,
    maintenance: Maintenance,
    *,
    now: Callable[[], float],
    say: Callable[[str], None],
) -> ActDeps:
    """Make what acts ask of targets."""

    def is_here(name: str) -> bool:
        return name not in targets or (here.is_here(name) and recall.has(name))

    def incident(name: str) -> Incident | None:
        return targets[name].incident if name in targets else groups.incident(name)

    def why_not_now(name: str) -> str | None:
        if targets[name].kind == PUSH.name:
            return "it reports by itself"
        if has_instants(targets, name):
            return "its nodes check it together, at the instants of its schedule"
        window = maintenance.window_at(name, now())
        return None if window is None else f"it is in maintenance: {window}"

    return ActDeps(now=now, say=say, is_here=is_here, incident_of=incident, why_not_now=why_not_now)


def known_of(targets: Iterable[Target], groups: Iterable[GroupPlan]) -> Known:
    """The names that acts may name."""
    return Known(
        {each.name: frozenset(each.tags) for each in targets if each.is_enabled},
        {each.name: each.members for each in groups},
    )


def tell_acts(keeper: ActKeeper, news: News) -> None:
    """Tell acts how a target or group stands. Messages hear first: that of an end names the acknowledgement."""
    match news:
        case Checked(target) | Remembered(target):
            keeper.stands(target.name, target.incident)
        case GroupRecalled(name, incident):
            keeper.stands(name, incident)
        case Closed(incident):
            keeper.closed(incident.target, incident)
        case _:
            pass
