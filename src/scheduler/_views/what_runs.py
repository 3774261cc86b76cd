"""Runs that go on, and ticks that wait, each with what it waits for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from timerqueue import TaskPool

from .._jobs import Job
from .._loop import Core
from .._plan import instant_at, instant_of
from .._runs import Run
from .._shape import RunInfo
from .._why import RUN_GOES_ON

NOT_RECORDED: Final = "the store has not recorded its start yet"


def runs_now(core: Core, pool: TaskPool, ids: Collection[str | None] | None = None) -> list[RunInfo]:
    """Return running runs before waiting ones, and the oldest first. Any thread. `ids`: only of these jobs."""
    runs = core.runs.all() if ids is None else [run for run in core.runs.all() if run.job.id in ids]
    jobs = {run.job.id: run.job for run in runs}
    found = [_info_of(run, pool) for run in runs]
    found += [info for job in jobs.values() for info in _backlog_of(job)]
    return sorted(found, key=lambda info: (info.state == "waiting", info.since, info.job_id))


def _info_of(run: Run, pool: TaskPool) -> RunInfo:
    started, needs = run.started, dict(run.needs)
    due, since = instant_of(run.due_us), instant_at(run.utc(run.due if started is None else started))
    job_id, attempt, tasks = run.job.id, run.attempt, run.open_tasks
    if started is not None:
        return RunInfo(job_id=job_id, due=due, attempt=attempt, state="running", since=since, needs=needs, tasks=tasks)
    limit, reason = _why_waiting(run, pool)
    return RunInfo(
        job_id=job_id,
        due=due,
        attempt=attempt,
        state="waiting",
        since=since,
        needs=needs,
        tasks=tasks,
        waits_for=limit,
        reason=reason,
    )


def _why_waiting(run: Run, pool: TaskPool) -> tuple[str | None, str]:
    if run.is_held or run.is_sent:
        return None, NOT_RECORDED
    limit = pool.waits_for(run) if run.needs else None
    if limit is not None:
        return limit, f"limit {limit!r} has no room for it"
    if pool.active >= pool.capacity:
        return None, f"all {pool.capacity:g} places of the scheduler are taken"
    return None, "it begins in its turn"


def _backlog_of(job: Job) -> Iterator[RunInfo]:
    for due_us, attempt in tuple(job.backlog or ()):
        due = instant_of(due_us)
        yield RunInfo(
            job_id=job.id,
            due=due,
            attempt=attempt,
            state="waiting",
            since=due,
            needs=dict(job.policy.needs),
            reason=RUN_GOES_ON,
        )
