"""How a buried node joins again, as a new incarnation without jobs.

Others have its jobs: it cancels their runs, and forgets their ticks and states. Rows that users wrote meanwhile are
kept, and written later. On the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from logging import getLogger
from typing import Final, Protocol

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from .._commits import Commits, Writer, in_turn
from .._jobs import AskedRun, Job
from .._plan import instant_of
from .._restore import RowParts, let_go_of, pauses_to_follow
from .._values import Backoff, Cause, MissedReason, RunMissed
from ..stores import Act, Opened, Sharing, Store, StoredJob, StoredPause, StoreError, StoreTakenOver

logger = getLogger(__name__)

RETRY: Final = Backoff(0.1, 1.0)

SLICE: Final = 100


class Owned(Protocol):
    def let_go(self) -> None: ...

    def is_idle(self) -> bool:
        """Return whether our clock can plan no stored job."""


class Rejoining:
    def __init__(
        self,
        store: Store,
        hint: Callable[[], None],
        writer: Writer,
        rows: RowParts,
        *,
        commits: Commits,
        sharing: Sharing,
        ours: Owned,
    ) -> None:
        self._store = store
        self._hint = hint
        self._sharing = sharing
        self._ours = ours
        self._writer = writer
        self._core = rows.core
        self._commits = commits
        self._reconciler = rows.reconciler
        self._row_reader = rows.row_reader

    async def let_go(self) -> None:
        self._commits.suspend()
        await in_turn(self._writer, lambda: None)  # a commit that was under way has been answered
        self._ours.let_go()
        for number, job in enumerate(self._core.jobs.jobs()):
            if job.task is not None and not job.is_elsewhere:
                self._let_go_of(job)
            if not number % SLICE:
                await checkpoint()
        self._core.journal.disown()

    def _let_go_of(self, job: Job) -> None:
        for asked in job.asked:
            self._ask_again(job, asked)
        let_go_of(job, self._core.queue)
        for run in job.runs:
            run.cause = Cause.LOST  # also if the run is being cancelled: its end must not be counted here

    def _ask_again(self, job: Job, asked: AskedRun) -> None:
        """Leave a run to the job's new node, unless it may have begun."""
        if asked.number is not None:  # its request stands in the store
            return
        due_us = asked.due_us or 0
        if any(run.due_us == due_us and run.is_held and run.is_sent for run in job.runs) or asked.last_end is not None:
            due = instant_of(due_us)
            asked.settle(asked.last_end or RunMissed(job.id, due, due, 1, MissedReason.STOPPED))
        else:
            self._core.journal.ask(job, Act.RUN, asked=asked)

    async def open(self) -> Opened:
        """Nothing is written before `Commits.reopen`."""
        failures = 0
        opened: Opened | None = None
        while True:
            now_us = self._core.timeline.us(self._core.monotonic(), steady=False)
            try:
                if opened is None:
                    opened = await in_turn(self._writer, partial(self._store.open, now_us, self._hint))
                self._follow_pauses(await in_turn(self._writer, self._store.pauses))
                return opened
            except StoreError as exc:
                failures += 1
                if isinstance(exc, StoreTakenOver):
                    opened = None
                logger.warning("the store cannot be opened again yet: %s", exc)
                await self._core.clock.sleep(RETRY.after(failures))

    def _follow_pauses(self, pauses: list[StoredPause]) -> None:
        for scope, pause in pauses_to_follow(self._core, pauses).items():
            self._reconciler.pause_scope(scope, None if pause is None else self._row_reader.pause(pause))

    async def read_again(self) -> None:
        with self._core.journal.noting_rows() as noted:
            await self._follow_all(noted.ids)

    async def _follow_all(self, noted: Collection[str]) -> None:
        """`noted`: rows that are known better here."""
        gone = {job.id for job in self._core.jobs.jobs() if job.task is not None}
        rows = self._sharing.load_others([])
        while (chunk := await run_sync(lambda: next(rows, None), abandon_on_cancel=True)) is not None:
            for number, (raw, _) in enumerate(chunk):
                gone.discard(raw.id)
                row = self._row_reader.job(raw)
                if row is not None and raw.id not in noted and not self._is_here(row):
                    self._reconciler.change(raw.id, row)
                if not number % SLICE:
                    await checkpoint()
        for id in gone:
            job = self._core.jobs.find(id)
            if job is not None and job.is_elsewhere and id not in noted:
                self._reconciler.change(id, None)

    def _is_here(self, row: StoredJob) -> bool:
        job = self._core.jobs.find(row.id)
        return self._reconciler.is_ours(row) if job is None else not job.is_elsewhere
