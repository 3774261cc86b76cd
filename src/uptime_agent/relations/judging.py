"""Judge a group with members on several nodes.

Only its previous state and its members count, so any node may judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen

from ..checks import Status
from ..standing import TargetStanding, TargetStatus, is_down
from .groups import GroupPlan, GroupState, error_of, incident_of, is_enough


@frozen
class GroupMember:
    """A group's member. `since`: UTC seconds, 0.0: never checked. `is_excused`: a parent is the cause."""

    name: str
    is_down: bool = False
    is_excused: bool = False
    since: float = 0.0


def state_of(name: str, values: Mapping[str, Any]) -> GroupState:
    """Read a group's state. Invalid values give the initial state."""
    try:
        number, changed, kept = int(values["number"]), float(values["changed"]), values.get("incident")
        if kept is None:
            return GroupState(number, changed)
        return GroupState(number, changed, incident_of(name, changed, number, str(kept["error"]), int(kept["members"])))
    except (KeyError, TypeError, ValueError, AttributeError):
        return GroupState()


def member_of(target: TargetStatus) -> GroupMember:
    """Make a member from a target."""
    state = target.state
    return GroupMember(target.name, is_down(state), target.is_excused, 0.0 if state is None else state.started_at)


def judged(plan: GroupPlan, before: GroupState, members: Sequence[GroupMember], now: float) -> GroupState:
    """Judge a group. A change is dated by its members, if possible, else `now` (UTC seconds)."""
    down = [each for each in members if each.is_down]
    needed = len(members) if plan.at_least is None else plan.at_least
    if before.incident is None and is_enough(plan, len(down), len(members)):
        if all(each.is_excused for each in down):
            return before
        began = max(sorted(each.since for each in down)[needed - 1], before.changed)
        error = error_of([each.name for each in down], len(members))
        incident = incident_of(plan.name, began, before.number + 1, error, len(down))
        return GroupState(before.number + 1, began, incident)
    if before.incident is not None and not is_enough(plan, len(down), len(members)):
        ups = sorted((each.since for each in members if not each.is_down and each.since > before.changed), reverse=True)
        ended = ups[needed - len(down) - 1] if needed - len(down) <= len(ups) else now
        return GroupState(before.number, ended)
    return before


def was_down(target: TargetStatus, began: float) -> bool:
    """Whether a target is down, or was at `began` (UTC seconds)."""
    if target.state is None:
        return False
    state, before = target.state, target.state.ends
    if state.status is TargetStanding.DOWN or (
        state.status is TargetStanding.FLAPPING and target.status is Status.DOWN
    ):
        return True
    return state.started_at > began and before is not None and before.status is TargetStanding.DOWN
