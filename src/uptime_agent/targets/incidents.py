"""Incidents: the stretches of time in which a target is not well that a person should hear of, each once.

An incident begins with a final result that is down, and ends with the state in which its target is up again. What lies
between, a flapping that becomes an outage or the other way round, is one incident. It bears the id of the state with
which it began. Both stand in history, so it is the same one after a restart.
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import evolve, frozen

from ..checks import Status
from .flapping import Result, Standing, TargetState

FLAPPING: Final = "flapping"

LONGEST_ERROR: Final = 200
"""Characters of an error that an incident keeps."""


@frozen
class Incident:
    """A target is down or flaps, which `status` says as it is by its latest check. `began`: UTC seconds since 1970.
    `error`: what was wrong when it began.

    `id`: of the target's state then (`state_id`), the same after a restart. `cause`: the target above that is down;
    None: there is none. `members`: how many other targets it stands for. `is_group`: `target` is a group of targets.
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
    """An incident has begun, and goes on."""

    incident: Incident


@frozen
class Closed:
    """An incident has ended, at `ended` in UTC seconds since 1970. `error`: what is still not as it should be.

    `is_gone`: nobody looks any more, so nobody knows whether it is up.
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
    """The incident of a target after a final result that led to `state`. None: there is none.

    `is_excused`: there is a reason that nobody need be told: then none begins, and one
    that goes on goes on.
    """
    if state.status is Standing.UP:
        return None
    if incident is not None:
        return _as_it_stands(incident, state)
    if result is Standing.UP or is_excused:
        return None
    is_flapping = state.status is Standing.FLAPPING
    has_changed_often = is_flapping and len(state.flap_history) > 1  # else it was up so far: people call that down
    return Incident(
        id=state.id,
        target=target,
        began=now if is_flapping else state.started_at,
        status=FLAPPING if has_changed_often else Status.DOWN,
        error=None if error is None else error[:LONGEST_ERROR],
    )


def _as_it_stands(incident: Incident, state: TargetState) -> Incident:
    """The incident with the word for its target's state. One that was down, up, and is down again has begun to flap."""
    if state.status is Standing.DOWN:
        status: Status | Literal["flapping"] = Status.DOWN
    elif state.flap_history[-1] is Standing.DOWN and Standing.UP in state.flap_history:
        status = FLAPPING
    else:
        return incident
    return incident if incident.status == status else evolve(incident, status=status)


def news_of(before: Incident | None, after: Incident | None, now: float, error: str | None) -> list[Opened | Closed]:
    """The news there are when the one has become the other at `now`."""
    if (None if before is None else before.id) == (None if after is None else after.id):
        return []
    closed = [] if before is None else [Closed(before, now, error)]
    return [*closed, *([] if after is None else [Opened(after)])]
