"""All jobs are judged by `Scheduler.add`, in memory, before any is stored. Nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from attrs import evolve, frozen

from schedule import At, Schedule, ScheduleError
from scheduler import Scheduler, SchedulerError
from scheduler.stores import StoredJob, StoredState
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import ManualClock

from .old_job import OldJob
from .options import options_of
from .refusal import NotCarried
from .triggers import ImportedInstants, schedule_of

PAUSED: Final = "it was paused in APScheduler"
_MOMENT: Final = timedelta(microseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Tasks = Mapping[str, Callable[..., Any]]


@frozen(kw_only=True)
class Judged:
    """A job's `row`, and its `state` if the next run is known. Or `why` it is refused."""

    id: str
    row: StoredJob | None = None
    state: StoredState | None = None
    remarks: tuple[str, ...] = ()
    why: str | None = None


async def judged(jobs: Sequence[OldJob], imported: ImportedInstants, tasks: Tasks) -> list[Judged]:
    """Judge jobs at `imported.ended`: equal jobs alike. `tasks`: chosen names of functions."""
    store = MemoryStore()
    scheduler = Scheduler(store=store, clock=ManualClock(imported.ended), audit=None)
    for name, func in tasks.items():
        scheduler.register(name, func)
    found: list[Judged] = []
    async with scheduler:
        for job in jobs:
            remarks = evolve(imported, remarks=[])
            try:
                found.append(_added(scheduler, job, remarks, tasks))
            except (NotCarried, SchedulerError, ScheduleError) as exc:
                found.append(Judged(id=job.id, why=str(exc)))
        await scheduler.flush()
    rows = {row.id: row for some in store.load() for row, _ in some}
    return [each if each.why else _with_row(each, rows[each.id]) for each in found]


def _added(scheduler: Scheduler, job: OldJob, imported: ImportedInstants, tasks: Tasks) -> Judged:
    if job.why is not None:
        raise NotCarried(job.why)
    schedule = schedule_of(job.trigger, imported, is_kept=job.is_kept)
    options = options_of(job, schedule)
    _refuse_what_is_over(schedule, imported.ended)
    added = scheduler.add(
        _task_of(scheduler, job, tasks),
        schedule,
        id=job.id,
        args=job.args,
        kwargs=job.kwargs,
        name=_name_of(job),
        **options,
    )
    if job.is_paused:
        added.pause(PAUSED)
    if "process" in job.executor:
        imported.remarks.append(f"executor {job.executor!r}: it runs in a thread, or on the loop")
    remarks = tuple(imported.remarks)
    return Judged(id=job.id, state=_state(job, added.schedule.bind(job.id)), remarks=remarks)


def _refuse_what_is_over(schedule: Schedule, now: datetime) -> None:
    if schedule.next(now) is None:
        why = (
            f"its only start, {schedule.when}, has passed" if isinstance(schedule, At) else "its last start has passed"
        )
        raise NotCarried(f"{why}: leave it out")


def _task_of(scheduler: Scheduler, job: OldJob, tasks: Tasks) -> str:
    """Raises NotCarried, or InvalidJob for an impossible name."""
    chosen = next((name for name, func in tasks.items() if func == job.func), None)
    if chosen is not None:
        return chosen
    if job.reference is None or job.func is None:
        raise NotCarried(
            f"its function is found by no name, {job.func!r:.100}: make it one of a module, or name it in --tasks"
        )
    name = job.reference.replace(":", ".")
    scheduler.register(name, job.func)
    return name


def _name_of(job: OldJob) -> str | None:
    of_function = (job.reference or "").rpartition(":")[2]
    return None if job.name in {of_function, getattr(job.func, "__name__", None)} else job.name


def _state(job: OldJob, schedule: Schedule) -> StoredState | None:
    if job.next_run is None:
        return None
    at = job.next_run.astimezone(UTC)
    is_by_hand = schedule.next(at - _MOMENT) != at
    return StoredState(job.id, (at - _EPOCH) // _MOMENT, is_by_hand)


def _with_row(judged: Judged, row: StoredJob) -> Judged:
    state = None if judged.state is None else judged.state._replace(next_of=row.schedule)
    return evolve(judged, row=row, state=state)
