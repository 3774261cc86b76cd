"""Views: what users can ask of a scheduler."""

from __future__ import annotations

from datetime import datetime

from anyio.to_thread import run_sync

from timerqueue import TaskPool

from .._changes import Change, ChangeBook, NotedRegistry
from .._jobs import Handle as Job, JobList
from .._memory import Memory, Record, record_of
from .._plan import aware, us_of
from .._running import RunsOnce
from .._shape import RunInfo, count_of
from .._statistics import statistics_of
from .._values import EventPage, Pause, SchedulerStatistics, scope_of_job
from .._watchdog import Watchdog
from .._why import Why, Whys
from ..stores import FleetView, capabilities
from .recent import RecentEvents
from .what_runs import runs_now


class Views(RunsOnce):
    """Answers about jobs and runs. None of them changes anything."""

    _changes: ChangeBook
    _jobs: JobList
    _memory: Memory | None
    _pool: TaskPool
    _recent: RecentEvents
    _registry: NotedRegistry
    _watchdog: Watchdog
    _whys: Whys

    def get(self, id: str) -> Job:
        """Return the job of that id. Raises JobNotFound."""
        return self._jobs.get(id)

    def __contains__(self, job: object) -> bool:
        if isinstance(job, Job):
            return self._jobs.find(job.id) is job
        return isinstance(job, str) and self._jobs.find(job) is not None

    def jobs(self) -> list[Job]:
        """Return all jobs in order of addition. A job whose schedule has ended is gone."""
        return self._jobs.jobs()  # type: ignore[return-value] # a new list, which callers may change

    def runs(self) -> list[RunInfo]:
        """Return the runs of this process that go on, then what waits, and for which limit. The oldest comes first.

        Any thread.
        """
        return runs_now(self._core, self._pool)

    async def why(self, job_id: str, at: datetime | None = None) -> Why:
        """Return why a job did or did not run at an instant; `str` says it in English.

        `at` None: its last due instant, or why it does not start now. An instant without a fraction stands for its
        whole second. Without a store only what goes on now and the last run are known. Call it on the event loop of
        any thread. Raises StoreError or InvalidJob.
        """
        at = None if at is None else aware("at", at)
        runs = runs_now(self._core, self._pool, frozenset(self._registry.ids_of(job_id)))
        return await self._whys.why(job_id, at, runs)

    def pauses(self) -> list[Pause]:
        """Return the present pauses of everything and of tags. One job's pause is in `Job.error`."""
        return list(self._core.pausing.pauses)

    async def history(
        self, job_id: str | None = None, *, limit: int = 100, before: datetime | None = None
    ) -> list[Record]:
        """Return how ticks ended, latest first: of one job, which may be gone, or of all. Empty without a store.

        `outcome` None: the run goes on. `before`: only ticks due before that. Call it on the event loop of any thread.
        Raises StoreError or InvalidJob.
        """
        most, before_us = count_of("limit", limit), None if before is None else us_of(aware("before", before))
        if self._memory is None:
            return []
        return [record_of(tick) for tick in await self._memory.history(self._registry.ids_of(job_id), most, before_us)]

    async def changes(
        self,
        job_id: str | None = None,
        *,
        actor: str | None = None,
        limit: int = 100,
        before: datetime | None = None,
    ) -> list[Change]:
        """Return who changed what, latest first: of one job or of all, by one actor or by all.

        Noted are pauses, resumes and new sizes of limits, and every verb called inside `acting_as`. A store keeps them,
        within its `Retention`. Without a store they are the last 1,000. `before`: only earlier changes. Call it on the
        event loop of any thread. Raises StoreError or InvalidJob.
        """
        most, before_us = count_of("limit", limit), None if before is None else us_of(aware("before", before))
        return await self._changes.read(None if job_id is None else scope_of_job(job_id), actor, most, before_us)

    def events(self, after: int | None = None, *, limit: int = 1_000) -> EventPage:
        """Return the latest events, in order, without results and tracebacks. Any thread.

        The first call begins to keep events, the last 4,096 of this process: before it they cost nothing. `after`: the
        `last` of the page before. None: from the oldest kept event on. Raises InvalidJob.
        """
        return self._recent.read(after, count_of("limit", limit))

    async def fleet(self) -> FleetView | None:
        """Return the nodes of the store, as the store says: leases, jobs, handovers, loans and standby servers.

        None: there is no store, or it knows no nodes. Call it on the event loop of any thread. Raises StoreError.
        """
        look = None if self._memory is None else capabilities(self._memory.store).fleet
        return None if look is None else await run_sync(look, abandon_on_cancel=True)

    def statistics(self) -> SchedulerStatistics:
        """Return the present counts of all jobs together."""
        return statistics_of(self._core, self._registry, self._memory, self._watchdog, stalls=self._life.stalls)
