"""The states of a job and every transition, in one table. docs/states.md draws it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .errors import ImpossibleTransition


class JobState(enum.Enum):
    """The state of a job; with several runs, that of the run furthest along."""

    SCHEDULED = "scheduled"
    """Waits for its next start."""
    STARTING = "starting"
    """Due, and waits for room."""
    RUNNING = "running"
    """The job or one of its subtasks runs or waits for its turn."""
    TERMINATING = "terminating"
    """Its run was cancelled, and has not ended."""
    DISABLED = "disabled"
    """Does not start by itself: paused, parked or out of retries. `Job.error` says why."""

    GONE = "gone"
    """Removed, or its schedule has ended."""

    __hash__ = object.__hash__  # members are single objects; enum's own hash is a Python call, made on every run


# Until Python 3.12, looking up a member of an enum costs ten times as much as a name.
SCHEDULED: Final = JobState.SCHEDULED
STARTING: Final = JobState.STARTING
RUNNING: Final = JobState.RUNNING
GONE: Final = JobState.GONE


class LifeStep(enum.Enum):
    START = "start"
    BEGIN = "begin"
    TERMINATE = "terminate"
    END = "end"
    DISABLE = "disable"
    ENABLE = "enable"
    LEAVE = "leave"

    __hash__ = object.__hash__


TRANSITIONS: Final[Mapping[LifeStep, Mapping[JobState, JobState]]] = MappingProxyType(
    {
        LifeStep.START: {
            JobState.SCHEDULED: JobState.STARTING,
            JobState.DISABLED: JobState.STARTING,  # run_now works on a paused job too
        },
        LifeStep.BEGIN: {JobState.STARTING: JobState.RUNNING},
        LifeStep.TERMINATE: {JobState.RUNNING: JobState.TERMINATING},
        LifeStep.END: {
            JobState.STARTING: JobState.SCHEDULED,  # it was dropped before it began
            JobState.RUNNING: JobState.SCHEDULED,
            JobState.TERMINATING: JobState.SCHEDULED,
        },
        LifeStep.DISABLE: {JobState.SCHEDULED: JobState.DISABLED},
        LifeStep.ENABLE: {JobState.DISABLED: JobState.SCHEDULED},
        LifeStep.LEAVE: {JobState.SCHEDULED: JobState.GONE, JobState.DISABLED: JobState.GONE},
    }
)


def advance(state: JobState, step: LifeStep) -> JobState:
    """Return the state after `step`. Raises ImpossibleTransition if the table has none."""
    try:
        return TRANSITIONS[step][state]
    except KeyError:
        msg = f"a job that is {state.value} cannot {step.value}"
        raise ImpossibleTransition(msg) from None


def at_rest(state: JobState, *, is_disabled: bool) -> JobState:
    if is_disabled and state is SCHEDULED:
        return advance(state, LifeStep.DISABLE)
    if not is_disabled and state is JobState.DISABLED:
        return advance(state, LifeStep.ENABLE)
    return state
