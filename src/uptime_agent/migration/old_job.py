"""Jobs of an APScheduler 3 as plain values."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.base import STATE_RUNNING, STATE_STOPPED, BaseScheduler
from attrs import evolve, frozen

_RANDOM_ID: Final = re.compile(r"[0-9a-f]{32}")


class Unread(Exception):
    """This is no scheduler of APScheduler 3."""


@frozen(kw_only=True)
class OldJob:
    """`reference`: the function as "module:name". `next_run` None: as the trigger says.

    `is_kept`: in a job store that outlives the process. `is_random`: its id differs in each process. `why`: it is
    unreadable; then only `id` counts.
    """

    id: str
    name: str | None = None
    func: Callable[..., Any] | None = None
    reference: str | None = None
    trigger: Any = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = {}
    grace: float | None = 1
    """Seconds; None: without a bound."""
    coalesce: bool = True
    max_instances: int = 1
    executor: str = "default"
    next_run: datetime | None = None
    is_paused: bool = False
    is_kept: bool = False
    is_random: bool = False
    why: str | None = None


def read_jobs(scheduler: object) -> list[OldJob]:
    """Read a scheduler's jobs; pause it if started. Its job stores do not change. Raises Unread."""
    if not isinstance(scheduler, BaseScheduler):
        msg = f"it is {scheduler!r:.100}, no scheduler of APScheduler 3"
        raise Unread(msg)
    if scheduler.state == STATE_RUNNING:
        scheduler.pause()
    found: dict[tuple[str, str], OldJob] = {}
    for alias, store in scheduler._jobstores.items():  # noqa: SLF001 - a scheduler that is not started has no public way to it
        for job in _stored(scheduler, alias, store):
            found[alias, job.id] = job
    for job, alias, replaces in scheduler._pending_jobs:  # noqa: SLF001 - as above
        read = _read(job, scheduler, is_kept=False)
        if (alias, read.id) in found and not replaces:
            why = "the job store has a job of that id, and the program adds another one without replace_existing"
            read = evolve(read, why=why)
        found[alias, read.id] = read
    return _with_lasting_ids(found.values())


def _stored(scheduler: Any, alias: str, store: Any) -> Iterator[OldJob]:
    """APScheduler would delete a broken job: it is told and stays."""
    if hasattr(store, "_reconstitute_job"):
        store._reconstitute_job = _restoring(store._reconstitute_job)  # noqa: SLF001 - the only place to stop it
    is_closed = scheduler.state == STATE_STOPPED
    if is_closed:
        store.start(scheduler, alias)
    try:
        for number, job in enumerate(store.get_all_jobs(), start=1):
            if isinstance(job, _Broken):
                yield OldJob(id=f"({alias}, row {number})", why=f"APScheduler cannot restore it: {job.error}")
            else:
                yield _read(job, scheduler, is_kept=not isinstance(store, MemoryJobStore))
    finally:
        if is_closed:
            store.shutdown()


class _Broken:
    next_run_time = None

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _restoring(restore: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def restored(state: Any) -> Any:
        try:
            return restore(state)
        except Exception as exc:  # noqa: BLE001 - whatever a pickle raises
            return _Broken(exc)

    return restored


def _read(job: Any, scheduler: Any, *, is_kept: bool) -> OldJob:
    """A pending job takes the scheduler's defaults."""
    defaults = scheduler._job_defaults  # noqa: SLF001 - what add_job leaves open until the start
    next_run = getattr(job, "next_run_time", _NOT_SAID)
    return OldJob(
        id=job.id,
        name=job.name,
        func=job.func,
        reference=job.func_ref,
        trigger=job.trigger,
        args=tuple(job.args),
        kwargs=dict(job.kwargs),
        grace=getattr(job, "misfire_grace_time", defaults.get("misfire_grace_time")),
        coalesce=getattr(job, "coalesce", defaults.get("coalesce")),
        max_instances=getattr(job, "max_instances", defaults.get("max_instances")),
        executor=job.executor,
        next_run=next_run if isinstance(next_run, datetime) else None,
        is_paused=next_run is None,
        is_kept=is_kept,
        is_random=not is_kept and _RANDOM_ID.fullmatch(job.id) is not None,
    )


_NOT_SAID: Final = object()


def _with_lasting_ids(jobs: Collection[OldJob]) -> list[OldJob]:
    """Name random ids after functions: a second import must find them."""
    named: list[OldJob] = []
    taken = {each.id for each in jobs if not each.is_random}
    for job in jobs:
        if not job.is_random:
            named.append(job)
            continue
        base = (job.reference or job.name or "job").replace(":", ".")
        id = next(each for each in _numbered(base) if each not in taken)
        taken.add(id)
        named.append(evolve(job, id=id))
    return named


def _numbered(base: str) -> Iterator[str]:
    yield base
    number = 2
    while True:
        yield f"{base}-{number}"
        number += 1
