"""Incidents: stretches in which a target is not well, each told once.

An incident begins with a final result that is down, and ends when its target is up. Outage and flapping may alternate
in one incident, also after a restart.
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import evolve, frozen

from ..checks import Status
from .flapping import Result, TargetStanding, TargetState

FLAPPING: Final = "flapping"

LONGEST_ERROR: Final = 200
"""Characters."""


@frozen
class Incident:
    """A target is down or flaps. `began`: UTC seconds. `error`: at its beginning.

    `id`: of its first state. `cause`: the parent that is down. `members`: other targets that it covers.
    """

    id: str
    target: str
    began: float
    status: Status | Literal["flapping"]
    error: str | None = None
    cause: str | None = None
    members: int = 0
    is_group: bool = False


@frozen
class Opened:
    """An incident has begun."""

    incident: Incident


@frozen
class Closed:
    """An incident has ended, at `ended` (UTC seconds). `error`: remaining trouble.

    `is_gone`: the target is no longer checked, and may still be down.
    """

    incident: Incident
    ended: float
    error: str | None = None
    is_gone: bool = False


def incident_after(
    incident: Incident | None,
    state: TargetState,
    result: Result,
    *,
    target: str,
    now: float,
    error: str | None,
    is_excused: bool = False,
) -> Incident | None:
    """The incident after a final result. `is_excused`: none begins, an open incident continues."""
    if state.status is TargetStanding.UP:
        return None
    if incident is not None:
        return _as_it_stands(incident, state)
    if result is TargetStanding.UP or is_excused:
        return None
    is_flapping = state.status is TargetStanding.FLAPPING
    has_changed_often = is_flapping and len(state.flap_history) > 1  # otherwise it was up before: people call that down
    return Incident(
        id=state.id,
        target=target,
        began=now if is_flapping else state.started_at,
        status=FLAPPING if has_changed_often else Status.DOWN,
        error=None if error is None else error[:LONGEST_ERROR],
    )


def _as_it_stands(incident: Incident, state: TargetState) -> Incident:
    """Down, up, and down again is flapping."""
    if state.status is TargetStanding.DOWN:
        status: Status | Literal["flapping"] = Status.DOWN
    elif state.flap_history[-1] is TargetStanding.DOWN and TargetStanding.UP in state.flap_history:
        status = FLAPPING
    else:
        return incident
    return incident if incident.status == status else evolve(incident, status=status)


def news_of(before: Incident | None, after: Incident | None, now: float, error: str | None) -> list[Opened | Closed]:
    """The news of a change."""
    if (None if before is None else before.id) == (None if after is None else after.id):
        return []
    closed = [] if before is None else [Closed(before, now, error)]
    return [*closed, *([] if after is None else [Opened(after)])]
