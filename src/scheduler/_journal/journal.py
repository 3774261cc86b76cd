"""The journal: what must survive the process, noted at once and written in groups.

A note costs a dictionary entry. `seal` closes a batch and writes its jobs' states as rows. A batch stays here until it
is durable, so that the journal knows what is on its way. `on_change` wakes the sender.

A run with room is *marked* before it begins: it waits until its mark is durable. All on the loop's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

from attrs import evolve

from .._jobs import AskedRun, Job, JobAttempt
from .._plan import Timeline
from .._values import MissedReason, Outcome, Pause
from ..stores import Act, Batch, Placed, RequestDone, StoredChange, StoredJob, StoredRequest, StoredState, StoredTick
from .aside import Aside
from .local_writes import LocalWrites
from .pending import Pending, with_pause
from .rows import job_pause, requested, row_of, stored_pause
from .sealed import Flushed, Sealed
from .ticks import dropped_attempt, missed_tick, renamed_tick, unmarked_tick


class Journal:
    """Notes only stored jobs."""

    def __init__(self, timeline: Timeline, monotonic: Callable[[], float], *, has_heirs: bool = False) -> None:
        self.pending = Pending()
        self.sealed: list[Sealed] = []
        """Batches that are not durable, in order: several if one was taken apart."""
        self.aside = Aside()
        self.unfollowed: dict[str, StoredJob | None] = {}
        """Changed rows that jobs have not followed. Later notes here win."""
        self.is_kept = False
        self.has_heirs = has_heirs
        """Whether other nodes continue what this one leaves."""
        self._unstored: set[str] = set()
        """Jobs whose row no store could take, so that they may have none."""
        self.awaited: dict[int, AskedRun] = {}
        self._timeline = timeline
        self._monotonic = monotonic
        self._on_change: Callable[[], None] = _nothing
        self._before_sending: Callable[[Batch], None] = _nothing
        self._fence: int | None = None
        self._noted: list[LocalWrites] = []

    def keep(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` at each note: there is a store. Called once."""
        self.is_kept = True
        self._on_change = on_change

    def before_sending(self, complete: Callable[[Batch], None]) -> None:
        """Let `complete` add to each sealed batch. Called once."""
        self._before_sending = complete

    def open(self, epoch: int) -> None:
        """Number marks by this epoch. Later calls change nothing."""
        if self._fence is None:
            self._fence = epoch << 32

    @property
    def epoch(self) -> int | None:
        """The epoch by which marks are numbered. None: there is no open store."""
        return None if self._fence is None else self._fence >> 32

    def reopen(self, epoch: int) -> None:
        self._fence = epoch << 32

    def disown(self) -> None:
        """Forget states and ends, which other nodes decide now. Keep rows and users' requests."""
        kept = Pending()
        batches: list[Batch | Pending] = [*(sealed.batch for sealed in self.unsettled), self.pending]
        for batch in batches:
            for id, row in batch.jobs.items():
                kept.put(id, row, is_change=id in batch.changed)
            kept.paused.update(batch.paused)
            kept.pauses.update(batch.pauses)
            kept.added.update(batch.added)
            kept.begun.update(batch.begun)
            kept.requests.extend(batch.requests)
            kept.made.extend(batch.made)
            kept.is_news = kept.is_news or batch.is_news
        waiting = [*(sealed.flushed for sealed in self.unsettled), self.pending.flushed]
        kept.flushed = list(chain.from_iterable(waiting))
        self.sealed, self.aside, self.pending = [], Aside(), kept

    @property
    def unsaved(self) -> int:
        """How many notes a loss of the store would cost."""
        return len(self.pending) + sum(sealed.size for sealed in self.unsettled)

    @property
    def unsettled(self) -> list[Sealed]:
        """Batches and parts that are not durable, in order for each job."""
        return [*self.aside.parts, *self.sealed]

    # -- rows ----------------------------------------------------------------------------------------------------------

    def add(self, job: Job, row: StoredJob | None, on_conflict: str) -> None:
        """If another node adds its id at this moment, `on_conflict` decides."""
        if job.is_removed:
            return
        pending = self.pending
        is_in_our_place = job.id in pending.finished or (job.id in pending.jobs and pending.jobs[job.id] is None)
        self.remember(job, row)
        if is_in_our_place:  # in the place of a job that is not yet removed
            self._replace(job)
        elif self.has_heirs:
            self.pending.added[job.id] = on_conflict
        elif not any(job.id in sealed.batch.jobs for sealed in self.unsettled):
            self.pending.fresh.add(job.id)

    def replace(self, job: Job, row: StoredJob | None = None) -> None:
        if job.is_removed:
            return
        self.remember(job, row)
        self._replace(job)

    def _replace(self, job: Job) -> None:
        if not self.has_heirs:
            return
        self.pending.pause(job.id, job_pause(job))
        if job.is_elsewhere:
            self.ask(job, Act.ANEW)

    def begin_elsewhere(self, job: Job, next_us: int, *, is_by_hand: bool) -> None:
        if job.id in self.pending.added:
            state = StoredState(job.id, next_us=next_us, next_by_hand=is_by_hand, next_of=job.schedule_text)
            self.pending.begun[job.id] = state
            self.note_row(job.id, state)
        elif is_by_hand:
            self.ask(job, Act.START_AT, next_us)

    def remember(self, job: Job, row: StoredJob | None = None, *, is_change: bool = False) -> None:
        """Note the job's row. `is_change`: if another has removed the job meanwhile, it stays removed."""
        if job.task is None or job.is_removed:
            return
        if job.unfit is not None and not job.unfit.is_readable:  # its row stays as it is until it is mended
            row = job.unfit.row
        row = row_of(job) if row is None else row
        job.schedule_text = row.schedule
        if not is_change or self.unfollowed.get(row.id) is not None:
            self.unfollowed.pop(row.id, None)
        self.pending.put(row.id, row, is_change=is_change and row.id not in self._unstored)
        self._unstored.discard(row.id)
        self.note_row(row.id)
        self._tell_if_elsewhere(job)
        self.touch(job)

    def remember_pause(self, job: Job) -> None:
        """Note only the pause. Other changes of the row stay, to be followed."""
        if job.task is None or job.is_removed:
            return
        pause = job_pause(job)
        if job.unfit is not None:
            job.unfit = evolve(job.unfit, row=with_pause(job.unfit.row, pause))
        if (row := self.unfollowed.get(job.id)) is not None:
            self.unfollowed[job.id] = with_pause(row, pause)
        self.pending.pause(job.id, pause)
        self.note_row(job.id)
        self._tell_if_elsewhere(job)
        self.touch(job)

    def remember_scope(self, scope: str, pause: Pause | None) -> None:
        """Note the pause of all jobs or of a tag. None: it is over."""
        if self.is_kept:
            self.pending.pauses[scope] = None if pause is None else stored_pause(pause)
            self.pending.is_news = True
            for noted in self._noted:
                noted.scopes.add(scope)
            self._on_change()

    def delete_row(self, job: Job, *, is_finished: bool = False) -> None:
        """`is_finished`: the job's schedule is over."""
        self.unfollowed.pop(job.id, None)
        self.pending.remove(job, job.schedule_text if is_finished else None)
        for noted in self._noted:
            noted.remove(job.id)
        self._tell_if_elsewhere(job)
        job.floor = None
        self._on_change()

    def is_newer(self, id: str, row: StoredJob | None) -> bool:
        """Return whether notes here win over a row that was read. A change does not win over a removal."""
        batches: list[Batch | Pending] = [*(sealed.batch for sealed in self.unsettled), self.pending]
        return any(id in batch.jobs and not (row is None and id in batch.changed) for batch in batches)

    def is_durable(self, job: Job) -> bool:
        pending = self.pending
        if job in pending.dirty or job in pending.with_tick:
            return False
        return not any(job.id in sealed.batch.states for sealed in self.unsettled)

    @contextmanager
    def noting_rows(self) -> Iterator[LocalWrites]:
        """Yield rows that are known better here than by a reading inside the block."""
        batches: list[Batch | Pending] = [*(sealed.batch for sealed in self.unsettled), self.pending]
        noted = LocalWrites(
            {id for batch in batches for id in (*batch.jobs, *batch.paused)},
            {id: state for batch in batches for id, state in batch.begun.items()},
            {scope for batch in batches for scope in batch.pauses},
        )
        self._noted.append(noted)
        try:
            yield noted
        finally:
            self._noted.remove(noted)

    def note_row(self, id: str, state: StoredState | None = None) -> None:
        for noted in self._noted:
            noted.put(id, state)

    def as_it_will_be(self, id: str, row: StoredJob | None) -> StoredJob | None:
        """Return the row with the pauses that are on their way to it."""
        for paused in (*(sealed.batch.paused for sealed in self.unsettled), self.pending.paused):
            row = with_pause(row, paused[id]) if row is not None and id in paused else row
        return row

    def _tell_if_elsewhere(self, job: Job) -> None:
        if job.is_elsewhere:
            self.pending.is_news = True

    def made(self, change: StoredChange) -> None:
        """Note who changed what, in the batch that has the change."""
        self.pending.made.append(change)
        self._on_change()

    # -- requests ------------------------------------------------------------------------------------------------------

    def ask(self, job: Job, act: Act, at_us: int | None = None, asked: AskedRun | None = None) -> None:
        if job.policy.agents is not None:
            return  # no node has it: its parts are asked
        number = self._next_fence()
        self.pending.ask(StoredRequest(number, job.id, act.value, at_us))
        if asked is not None:
            self.awaited[number] = asked
        self._on_change()

    def done(self, job: Job, number: int, due_us: int | None = None, reason: str | None = None) -> None:
        """Note that another node's request is done."""
        self.pending.done[number] = RequestDone(number, job.id, due_us, reason)
        self.pending.is_news = True
        self._touch_with_tick(job)

    def doing(self) -> set[int]:
        """Return requests that are done, but not durably."""
        return {*self.pending.done, *(done.number for sealed in self.unsettled for done in sealed.batch.done)}

    def asked_for(self) -> list[int]:
        """Return our durable requests for which a caller waits."""
        ours = [self.pending.requests, *(sealed.batch.requests for sealed in self.unsettled)]
        fresh = {request.number for requests in ours for request in requests}
        return [number for number in self.awaited if number not in fresh]

    # -- states and ticks ----------------------------------------------------------------------------------------------

    def touch(self, job: Job) -> None:
        self.pending.touch(job)
        self._on_change()

    def _touch_with_tick(self, job: Job) -> None:
        """One batch has the state and the tick's record."""
        self.pending.touch_with_tick(job)
        self._on_change()

    def mark(self, run: JobAttempt) -> None:
        """The run counts from now on, and until its end as a crash."""
        run.wait_for_mark(self._next_fence())
        run.job.counts().runs += 1
        self.pending.marks[run] = None
        self.pending.last_missed.pop(run.job, None)
        self._touch_with_tick(run.job)

    def withdraw(self, run: JobAttempt) -> bool:
        """False: the mark has been sent."""
        if run.is_sent:
            return False
        self.pending.marks.pop(run, None)  # a run that goes without a mark has none
        run.job.counts().runs -= 1
        return True

    def unmark(self, run: JobAttempt, reason: MissedReason) -> None:
        self._touch_with_tick(run.job)
        if self.withdraw(run):
            if run.attempt == 1:
                self.missed(run.job, missed_tick(run.job.id, run.due_us, run.due_us, 1, reason, waited=run.waited))
            return
        run.job.counts().runs -= 1
        if reason is not MissedReason.REPEATED:
            self.pending.ended.append(unmarked_tick(run, reason, self._now_us()))

    def stands_as_request(self, run: JobAttempt) -> bool:
        """Return whether another node's request still stands for the run."""
        return not run.is_sent and run.due_us in requested(run.job)

    def postpone(self, run: JobAttempt, reason: MissedReason) -> StoredTick:
        """Note that the run will not begin, and is owed."""
        if not run.is_held:
            return self.owe(run.job, run.due_us, reason)
        if not self.withdraw(run):
            run.job.counts().runs -= 1
        return self.owe(run.job, run.due_us, reason, run.attempt, run.fence_number)

    def owe(self, job: Job, due_us: int, reason: MissedReason, attempt: int = 1, fence: int = 0) -> StoredTick:
        """Note that an attempt is owed. Return the record. `fence` 0: it has no mark."""
        dropped = dropped_attempt(job.id, due_us, attempt, fence or self._next_fence(), reason, self._now_us())
        tick = dropped._replace(owed=True)
        self.pending.ended.append(tick)
        self._touch_with_tick(job)
        return tick

    def give_up(self, tick: StoredTick, why: str) -> None:
        """Owe the tick no more. Its record says why."""
        error = f"{tick.error or tick.outcome}; given up: {why}"
        self.pending.ended.append(tick._replace(owed=False, error=error))
        self._on_change()

    def ended(self, job: Job, tick: StoredTick) -> None:
        self.pending.ended.append(tick)
        self._touch_with_tick(job)

    def crashed(
        self, tick: StoredTick, now_us: int, error: str, job: Job | None = None, *, owed: bool = False
    ) -> StoredTick:
        """End a tick found RUNNING. `job` None: it is gone."""
        record = tick._replace(outcome=Outcome.CRASHED.value, ended_us=now_us, error=error, owed=owed)
        self.pending.ended.append(record)
        if job is None:
            self._on_change()
        else:
            self._touch_with_tick(job)
        return record

    def placed(self, placed: Placed) -> None:
        self.pending.placed.append(placed)

    def missed(self, job: Job, tick: StoredTick) -> None:
        self.pending.miss(job, tick._replace(ended_us=self._now_us()))
        self._touch_with_tick(job)

    # -- batches -------------------------------------------------------------------------------------------------------

    def flush(self, done: Flushed) -> None:
        """Call `done` when all present notes are durable."""
        self.pending.flushed.append(done)
        self._on_change()

    def seal(self) -> None:
        self.pending.name_missed(self._next_fence)
        made = self.pending.made
        self.pending.made = [each if each.number else each._replace(number=self._next_fence()) for each in made]
        sealed, self.pending = self.pending.seal(self._timeline, self._now_us())
        self._before_sending(sealed.batch)
        self.sealed.append(sealed)

    def taken(self) -> Sealed:
        """Take out the first batch, which is durable."""
        return self.sealed.pop(0)

    def lost(self) -> Sealed:
        """Take out the first batch, which no store can take."""
        sealed = self.taken()
        unstored = {id for id, row in sealed.batch.jobs.items() if row is not None}
        self._unstored |= unstored
        batches: list[Batch | Pending] = [*(each.batch for each in self.unsettled), self.pending]
        for batch in batches:
            batch.changed -= unstored
        return sealed

    def take_apart(self, most: int | None = None) -> bool:
        """Divide the first batch by the ticks of `most` jobs, or by job. False: impossible."""
        parts = self.sealed[0].by_job() if most is None else self.sealed[0].pieces(most)
        if len(parts) < 2:  # noqa: PLR2004 - this part itself fails
            return False
        self.sealed[:1] = parts
        return True

    def marked(self) -> list[JobAttempt]:
        return [*self.pending.marks, *(run for sealed in self.unsettled for run in sealed.runs)]

    def rename(self, tick: StoredTick) -> None:
        """Record ticks that never began under the next name: theirs is taken."""
        self.pending.ended.append(renamed_tick(tick))

    def _next_fence(self) -> int:
        assert self._fence is not None
        self._fence += 1
        return self._fence

    def _now_us(self) -> int:
        return self._timeline.us(self._monotonic(), steady=False)


def _nothing(*_: object) -> None: ...
