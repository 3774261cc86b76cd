"""How long jobs are here, and for how many there is room.

    deliveries        fill the room, with the room that ends of runs make in about a second
    nearly all jobs   leave again within milliseconds
    jobs that stay    have their next execution planned
    jobs that wait    for a second in our line, unbegun, go back if there are other nodes

The length of runs is measured: time at work, divided by ended runs. On the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from timerqueue import LifecycleError

from ..._jobs import Job, JobAttempt
from ..._journal import stays_due
from ..._loop import Core
from ..._restore import let_go_of
from ...queues import Queue
from .claims import Claim, Claims, GivenBack

LOOK_S: Final = 0.5
"""Seconds between looks at jobs that stay."""

LOOK_EVERY: Final = 0.25
"""Seconds between looks at our room."""

WAITS: Final = 1.0
"""Seconds between looks at waiting jobs. The second look gives a job back."""

AHEAD: Final = 1.5
"""Seconds of ends that count as room: executions come out up to 1.1 s early."""

NEAR_S: Final = 2.0
"""Seconds before its due instant when a start needs room."""

MAX_BOUND: Final = 10_000
"""Executions above which only the queue's bound holds."""

MOST_BACK: Final = 100

HALF_LIFE: Final = 4.0
"""Seconds at work after which a measurement counts half."""


class Room:
    def __init__(self, held: Claims, core: Core, bound: Callable[[int | None], object] | None) -> None:
        self._held = held
        self._core = core
        self._bound = bound
        self._told: int | None = None
        self._ended = 1.0
        self._seconds = 1.0  # until a run has ended, the length is taken to be a second
        self._looked = 0.0

    @property
    def is_told(self) -> bool:
        return self._bound is not None

    def ended(self, count: int) -> None:
        self._ended += count

    def look(self) -> None:
        if self._bound is None:
            return
        self._measure()
        most = self._most()
        if most != self._told:
            self._told = most
            self._bound(most)

    def is_less(self) -> None:
        self._ended /= 2

    def _measure(self) -> None:
        now, pool = self._core.monotonic(), self._core.pool
        seconds = min(now - self._looked, LOOK_EVERY)
        self._looked = now
        if pool.active:
            kept = 0.5 ** (seconds / HALF_LIFE)
            self._ended *= kept
            self._seconds = self._seconds * kept + seconds * pool.active

    def _most(self) -> int | None:
        """Jobs that wait for a named limit or a time take no room."""
        pool = self._core.pool
        room = pool.capacity * (1 + AHEAD * self._ended / self._seconds)
        if room >= MAX_BOUND:
            return None
        soon = self._core.monotonic() + NEAR_S
        aside = {id for part in self._core.journal.aside.parts for id in part.job_ids()}
        to_come, waits = 0, sum(id in aside for id in (*self._held.leaving, *self._held.strays))
        for id in self._held.by_id:
            job = self._core.jobs.find(id)
            if id in aside or job is None or not (job.runs or (job.is_waiting and job.due <= soon)):
                waits += 1
            elif not job.runs:
                to_come += 1
        return int(room + min(to_come, room)) + waits + pool.held_up


class LongClaims:
    def __init__(self, held: Claims, core: Core, queue: Queue) -> None:
        self._held = held
        self._core = core
        self.room = Room(held, core, getattr(queue, "bound", None))
        self.given_back = 0
        self._new: dict[str, Claim] = {}
        self._old: dict[str, Claim] = {}
        self._waited: dict[str, Claim] = {}
        self._is_armed = self._is_looking = False
        self._waits_at = 0.0

    def see(self, job_id: str, hold: Claim) -> None:
        """Plan this job's next execution, if it is still here in a while."""
        if self._old.get(job_id) is not hold:
            self._new[job_id] = hold
        if not self._is_armed:
            self._is_armed = self._soon(LOOK_S, self._look)

    def begin(self) -> None:
        """Look at our room while any job is here, if the queue or another node can use it."""
        if not self._is_looking and (self.room.is_told or self._held.has_others()):
            self._is_looking = self._soon(LOOK_EVERY, self._look_at_room)

    def _soon(self, seconds: float, look: Callable[[], None]) -> bool:
        with suppress(LifecycleError):  # the loop ends: the last commit releases the jobs here
            self._core.queue.push(self._core.monotonic() + seconds, look)
        return True

    def _look(self) -> None:
        long, self._old, self._new = self._old, self._new, {}
        for job_id, hold in long.items():
            job = self._core.jobs.find(job_id)
            if job is not None and self._held.by_id.get(job_id) is hold:
                hold.is_long = True
                self._core.journal.touch(job)
        self._is_armed = False
        if self._old:
            self._is_armed = self._soon(LOOK_S, self._look)

    # -- room ------------------------------------------------------------------------------------------------------

    def _look_at_room(self) -> None:
        self._is_looking = False
        now = self._core.monotonic()
        if now >= self._waits_at:
            self._waits_at = now + WAITS
            self._look_at_line()
        self.room.look()
        if self._held.by_id or self._held.leaving or self._held.strays:
            self.begin()

    def _look_at_line(self) -> None:
        waited, self._waited = self._waited, {}
        if not self._core.pool.waiting or not self._held.has_others() or self._core.runs.is_stopping:
            return
        back = list[tuple[Job, Claim, JobAttempt]]()
        for job_id, hold in self._held.by_id.items():
            job = self._core.jobs.find(job_id)
            run = None if job is None else self._waiting(job, hold)
            if job is None or run is None:
                continue
            if waited.get(job_id) is hold and len(back) < MOST_BACK:
                back.append((job, hold, run))
            else:
                self._waited[job_id] = hold
        for each in back:
            self._give_back(*each)
        if back:
            self._core.journal.flush(lambda _lost: None)
            if self._core.pool.active >= self._core.pool.capacity:
                self.room.is_less()

    def _waiting(self, job: Job, hold: Claim) -> JobAttempt | None:
        if len(job.runs) != 1 or hold.due_us is None or job.id in self._held.strays or job.id in self._held.leaving:
            return None
        run = job.runs[0]
        has_begun = run.started is not None or run.is_held or run.owes is not None or run.cause is not None
        is_alone = not (job.backlog or job.threads or job.asked or job.again or job.owed or job.is_paused)
        if has_begun or not is_alone or hold.delivery is None or isinstance(hold.delivery, GivenBack):
            return None
        is_first = run.attempt == 1 and stays_due(job, run.due_us, 1, self._core.timeline)
        return run if is_first and self._held.has_others(job.policy.where) and not self._waits_for_fleet(run) else None

    def _waits_for_fleet(self, run: JobAttempt) -> bool:
        """Others could not run it either: its units go where they are wanted most."""
        return any(self._core.pool.is_lent(name) for name, _ in run.needs)

    def _give_back(self, job: Job, hold: Claim, run: JobAttempt) -> None:
        del self._held.by_id[job.id]
        self._held.strays[job.id] = hold
        hold.planned = (run.due_us, job.schedule_text or "")
        hold.gives_back, hold.rests = run.due_us == hold.due_us, 1
        self.given_back += 1
        let_go_of(job, self._core.queue)
