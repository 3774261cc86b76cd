"""The states of a job and every transition between them, in one table. It makes the picture in docs/states.md."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from .errors import ImpossibleTransition


class JobState(enum.Enum):
    """The state of a job. With several runs at a time it is the state of the run that is furthest along."""

    SCHEDULED = "scheduled"
    """The job waits for its next start."""
    STARTING = "starting"
    """The job is due, and waits for room."""
    RUNNING = "running"
    """The job, or one of its subtasks, runs or waits for its turn."""
    TERMINATING = "terminating"
    """The job's run was cancelled, and has not ended yet."""
    DISABLED = "disabled"
    """The job does not start by itself: it is paused, parked or out of retries. `Job.error` says why."""

    GONE = "gone"
    """The job was removed, or its schedule has ended: its scheduler no longer has it."""

    __hash__ = object.__hash__  # members are single objects; enum's own hash is a Python call, made on every run


# Until Python 3.12, looking up a member of an enum costs ten times as much as a name.
SCHEDULED: Final = JobState.SCHEDULED
STARTING: Final = JobState.STARTING
RUNNING: Final = JobState.RUNNING
GONE: Final = JobState.GONE


class Step(enum.Enum):
    """An event in a job's life that may change its state."""

    START = "start"
    BEGIN = "begin"
    TERMINATE = "terminate"
    END = "end"
    DISABLE = "disable"
    ENABLE = "enable"
    LEAVE = "leave"

    __hash__ = object.__hash__


TRANSITIONS: Final[Mapping[Step, Mapping[JobState, JobState]]] = MappingProxyType(
    {
        Step.START: {
            JobState.SCHEDULED: JobState.STARTING,
            JobState.DISABLED: JobState.STARTING,  # run_now works on a paused job too
        },
        Step.BEGIN: {JobState.STARTING: JobState.RUNNING},
        Step.TERMINATE: {JobState.RUNNING: JobState.TERMINATING},
        Step.END: {
            JobState.STARTING: JobState.SCHEDULED,  # it was dropped before it began
            JobState.RUNNING: JobState.SCHEDULED,
            JobState.TERMINATING: JobState.SCHEDULED,
        },
        Step.DISABLE: {JobState.SCHEDULED: JobState.DISABLED},
        Step.ENABLE: {JobState.DISABLED: JobState.SCHEDULED},
        Step.LEAVE: {JobState.SCHEDULED: JobState.GONE, JobState.DISABLED: JobState.GONE},
    }
)


def advance(state: JobState, step: Step) -> JobState:
    """Return the state after `step`. Raises ImpossibleTransition where the table has no transition."""
    try:
        return TRANSITIONS[step][state]
    except KeyError:
        msg = f"a job that is {state.value} cannot {step.value}"
        raise ImpossibleTransition(msg) from None


def at_rest(state: JobState, *, is_disabled: bool) -> JobState:
    """Return the state of a job without a run."""
    if is_disabled and state is SCHEDULED:
        return advance(state, Step.DISABLE)
    if not is_disabled and state is JobState.DISABLED:
        return advance(state, Step.ENABLE)
    return state
