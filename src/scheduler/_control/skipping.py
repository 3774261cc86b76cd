"""Leave out a job's next start, or take back a start set by hand. On the loop."""

from __future__ import annotations

from .._jobs import Job
from .._loop import Core
from .._starts import SKIPPED


def skip(core: Core, job: Job) -> None:
    """A failing schedule parks the job."""
    try:
        due_us = core.starts.skip(job)
    except Exception as exc:  # noqa: BLE001 - a user's schedule may raise anything
        core.starts.parking.park(job, exc)
        return
    if due_us is not None:
        core.missed.miss(job, due_us, due_us, 1, SKIPPED)
        core.starts.retire_if_done(job)


def supersede(core: Core, job: Job) -> None:
    """A failing schedule parks the job."""
    try:
        core.starts.supersede(job)
    except Exception as exc:  # noqa: BLE001 - as above
        core.starts.parking.park(job, exc)
        return
    core.starts.retire_if_done(job)
