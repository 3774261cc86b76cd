"""A world in which programs live, one after another, over one store.

A *world* has a clock that is turned by hand and a store. Schedulers live in it one after another; each ends by a stop
or by its death, of which nothing reaches the store. The model watches from outside: what begins, what is cut off, and
which verbs give up what. It holds the scheduler to four promises, of which each `check_...` is one:

- owed ticks go before regular ones, oldest first; in the end each has run or was given up, and its record says so;
- each tick has one record, and no attempt at it begins twice;
- nothing of a job begins by itself before its floor, which is counted from when its crash was found;
- no next start is further away than the schedule and the floor would put it from now on.

Test files load this from beside them: below tests nothing is a package.
"""

from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from importlib.util import module_from_spec, spec_from_file_location
from itertools import cycle, pairwise
from pathlib import Path

from attrs import frozen

from kit import no_hint
from scheduler import Delivery, JobState, Scheduler, current_run
from scheduler.stores import RUNNING, Batch, Retention, StoreUnusable
from scheduler.testing import FlakyStore
from timerqueue.testing import ManualClock

SPEC = spec_from_file_location("life_model", Path(__file__).with_name("life_model.py"))
life_model = module_from_spec(SPEC)
SPEC.loader.exec_module(life_model)

FLOOR = 60.0
FOR_EVER = 10**9
ALL_VERBS = ("open", "load", "pauses", "running", "owed", "commit", "changes", "history", "prune")

SCHEDULES = {
    "@every 10s": 10,
    "@every 25s anchor=2026-01-01T00:00:00+00:00": 25,
    "*/20 * * * * *": 20,
    "* * * * *": 60,
    "@after 15s": 15,
}
"""Schedules, and the longest time between two of their starts, in seconds."""

GRIDS = {"*/20 * * * * *": 20, "* * * * *": 60}
"""Those whose slots do not depend on the steps of the clock."""

PAUSES = ("a", "b", "tag:x", "*")
IDS = PAUSES[:2]
UNREADABLE = "{"


def us_of(instant):
    """Return whole microseconds since 1970."""
    return round(instant.timestamp() * 1e6)


@frozen
class Death:
    """The store hears of so many more commits; for some seconds nobody knows that yet. `is_answer_lost`: it hears of
    all, and its answers do not get through.
    """

    commits: int = 0
    seconds: int = 0
    is_answer_lost: bool = False


class World:
    """`make_store` makes another store object for the same place. `takes`: seconds that the runs take, in turn; None:
    the run fails at once.
    """

    def __init__(self, make_store, takes):
        self.clock = ManualClock()
        self.make_store = make_store
        self.model = life_model.Model()
        self.takes = cycle(takes or [1])
        self.s = None
        self._is_over = False
        self._knows_task = True
        self._is_back = False
        """The clock was set back in this life."""
        self._schedules = {}
        """The texts of those that a job has had in this life."""
        self._had = {}
        """The same of all lives, each with when it was seen last, in UTC microseconds."""
        self._set_by_hand = set()
        """Jobs whose next start was ever set."""
        self._open = {}
        """Attempts that have begun and not ended, by tick."""
        self.errors = []

    # -- lives ---------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def life(self, end, adds=(), *, knows_task=True):
        """Let a program live: it adds these jobs, as (id, options, on_conflict), before its store has been read."""
        store = FlakyStore(
            self.make_store(), is_immediate=True, verbs=ALL_VERBS, error=StoreUnusable("its process is dead")
        )
        crashed = self._found_running()
        for_ever = Retention(per_job=None, age=None, total_bytes=None)
        limits = {"x": 1, "y": 1}
        self.s = Scheduler(store=store, clock=self.clock, crash_floor=FLOOR, retention=for_ever, limits=limits)
        self._open, self._schedules = {}, {}
        self._is_over, self._knows_task, self._is_back = False, knows_task, False
        if knows_task:
            self.s.register("work", self.work)
            for job, options, on_conflict in adds:
                if on_conflict == "replace":
                    self.model.forget(job)
                    self.model.never_owed.update(tick for tick in crashed if tick[0] == job)
                self.s.add("work", id=job, on_conflict=on_conflict, **options)
        async with self.s:
            await self._found(crashed)
            yield self.s
            self._raise()
            if isinstance(end, Death):
                await self._die(store, end)
            self._is_over = True
            self.s.stop(grace=0 if isinstance(end, Death) else end)
        if not isinstance(end, Death):
            self._stopped()
        self._raise()

    async def work(self):
        """Take some time, or fail; the model is told."""
        run = current_run()
        tick, seconds = (run.job_id, us_of(run.due)), next(self.takes)
        self._give_up_by_policy(self._job(run.job_id))
        try:
            self.model.begins(tick, run.attempt, self.clock.monotonic())
        except AssertionError as error:
            self.errors.append(error)
        self._open[tick] = run.attempt
        if run.attempt == 1:
            self._check_slot(*tick)
        if seconds is None:
            del self._open[tick]
            self.model.failed.add((tick, run.attempt))
            raise ValueError("it fails")
        try:
            await self.clock.sleep(seconds)
        except BaseException:
            if not self._is_over:  # else it is cut off
                del self._open[tick]
            raise
        del self._open[tick]

    def _check_slot(self, name, due_us):
        """A regular start is a slot of a schedule that the job has, had in this life, or had when it was due and waited
        for room. What comes again after the clock was set back has a name of its own, some microseconds later.
        """
        job = self._job(name)
        if job is None or (name, due_us) in self.model.by_hand or name in self._set_by_hand:
            return
        had = [text for text, last_us in self._had.get(name, {}).items() if due_us <= last_us]
        periods = {GRIDS.get(text) for text in (*had, *self._schedules.get(name, ()), str(job.schedule))}
        if None not in periods and not any(due_us % (period * 1_000_000) < 1_000 for period in periods):
            self.errors.append(AssertionError(f"{due_us} is no slot of {name!r} ({job.schedule})"))

    def _found_running(self):
        with self.opened() as store:
            return {(tick.job_id, tick.due_us): tick.attempt for tick in store.running()}

    async def _found(self, crashed):
        """A scheduler has begun, and found these RUNNING."""
        await self.settle()
        self.model.cut_off.update(crashed)
        crashed = {tick: attempt for tick, attempt in crashed.items() if tick not in self.model.never_owed}
        self.model.rest_until.update((job, self.clock.monotonic() + FLOOR) for job, _ in crashed)
        self.model.owed.update(crashed)
        for job in IDS:
            found = self._job(job)
            if found is None or (not self._is_unreadable(found) and found.policy.delivery is Delivery.AT_MOST_ONCE):
                for tick in [tick for tick in crashed if tick[0] == job]:
                    del self.model.owed[tick]
                    self.model.never_owed.add(tick)
        self.look()

    async def _die(self, store, death):
        """From some commit on nothing of this life reaches the store; what runs notices only that none answers."""
        store.before_or_after = "after" if death.is_answer_lost else "before"
        store.fail_on = range(store.counted + death.commits + 1, FOR_EVER)
        await self.clock.travel(death.seconds)
        store.store.close()

    def _stopped(self):
        """What was cut off is owed, if its job says at least once."""
        for tick, attempt in self._open.items():
            job = self._job(tick[0])
            if job is not None and job.policy.delivery is Delivery.AT_LEAST_ONCE:
                self.model.owed[tick] = attempt
            else:
                self.model.never_owed.add(tick)
        with self.opened() as store:
            assert store.running() == []
            self.check_store(store)

    def _raise(self):
        if self.errors:
            raise self.errors[0]

    # -- what is done while nobody lives -------------------------------------------------------------------------------

    @contextmanager
    def opened(self):
        """Look into the store, between two lives."""
        store = self.make_store()
        store.open(us_of(self.clock.now()), no_hint)
        try:
            yield store
        finally:
            store.close()

    def edit(self, job, **changes):
        """Change a row by hand; `row=None` deletes it."""
        with self.opened() as store:
            rows = {row.id: row for chunk in store.load() for row, _ in chunk}
            if job not in rows:
                return
            row = None if "row" in changes else rows[job]._replace(**changes)
            store.commit(Batch(jobs={job: row}))
        if row is None:
            running = self._found_running()
            for tick in [tick for tick in running if tick[0] == job]:
                self.model.never_owed.add(tick)
            self.model.forget(job)

    def step(self, seconds):
        """Set the wall clock. Floors and starts are instants on the wall: they are not held to it from then on."""
        self.clock.step(seconds)
        self.model.rest_until.clear()
        self.model.promised = dict.fromkeys(self.model.promised, float("inf"))

    # -- verbs ---------------------------------------------------------------------------------------------------------

    async def settle(self):
        """Let everybody do what needs no time."""
        await self.clock.travel(0)

    async def do(self, verb, *args):
        """Call a verb, and look at what has come of it."""
        getattr(self, f"do_{verb}")(*args)
        await self.settle()
        self.look()

    def _job(self, name):
        return next((job for job in self.s.jobs() if job.id == name), None)

    @staticmethod
    def _is_unreadable(job):
        return job.is_parked and "there is no task" not in (job.error or "")

    def do_add(self, name, options, on_conflict):
        if not self._knows_task:
            return
        if on_conflict == "replace" and self._job(name) is not None:
            self.model.forget(name)
        self.s.add("work", id=name, on_conflict=on_conflict, **options)

    def do_pause(self, scope):
        match scope:
            case "*":
                self.s.pause()
            case "tag:x":
                self.s.pause("x")
            case _ if self._job(scope):
                self._job(scope).pause()

    def do_resume(self, scope):
        match scope:
            case "*":
                self.s.resume()
            case "tag:x":
                self.s.resume("x")
            case _ if self._job(scope):
                self.model.rest_until.pop(scope, None)
                self._job(scope).resume()

    def do_update(self, name, changes):
        job = self._job(name)
        if job is not None and not job.is_parked:
            job.update(**changes)

    def do_run_now(self, name):
        job = self._job(name)
        if job is not None and not job.is_parked and not self._is_back:  # else its name is some instant before
            self.model.asked_for(name, us_of(self.clock.now()))
            job.run_now()

    def do_set_next_start(self, name, seconds):
        job = self._job(name)
        if job is not None:
            at = self.clock.now() + timedelta(seconds=seconds)
            self._set_by_hand.add(name)
            self.model.rest_until.pop(name, None)
            self.model.promised[name] = self.clock.wall() + seconds + 1
            self.model.by_hand.add((name, us_of(at)))
            job.set_next_start(at)

    def do_remove(self, name):
        job = self._job(name)
        if job is not None:
            self.model.forget(name)
            job.remove()

    def do_step(self, seconds):
        self._is_back |= seconds < 0
        self.step(seconds)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def look(self):
        """After each verb: who gave up what, and how far away the next starts are."""
        for name in IDS:
            job = self._job(name)
            if job is None:
                self.model.forget(name)
            elif not job.is_parked:  # else it is not known yet what its row will say
                self._give_up_by_policy(job)
                self._schedules.setdefault(name, set()).add(str(job.schedule))
                self._had.setdefault(name, {})[str(job.schedule)] = us_of(self.clock.now())
                self.check_next_start(job)
        self._raise()

    def _give_up_by_policy(self, job):
        if job is not None and job.policy.delivery is Delivery.AT_MOST_ONCE:
            self.model.give_up(job.id)

    def check_next_start(self, job):
        """It is no further away than the job's schedule and the floor allow."""
        if job.is_paused or job.is_parked or job.state is not JobState.SCHEDULED:
            return
        if self.clock.wall() < self.model.promised.get(job.id, 0):
            return
        assert job.next_start is not None, f"{job.id!r} has no next start"
        seconds = (job.next_start - self.clock.now()).total_seconds()
        longest = 2 * max(SCHEDULES.values()) + FLOOR  # a step back leaves up to two intervals
        assert seconds <= longest, f"{job.id!r} ({job.schedule}) starts in {seconds} s"

    def check_store(self, store):
        """It knows of the same debts."""
        owed = {(tick.job_id, tick.due_us): tick.attempt for tick in store.owed()}
        assert owed == self.model.owed, f"{owed} are owed by the store, and should be {self.model.owed}"
        for tick in store.history(limit=10**6):
            key = tick.job_id, tick.due_us
            attempts = self.model.begun.get(key, [])
            assert not attempts or tick.attempt >= max(attempts), f"{tick} is older than what has begun: {attempts}"
            most = max([*attempts, self.model.cut_off.get(key, 1)])
            assert tick.attempt <= most, f"{tick} has not been tried that often: {attempts}"
            if key in self.model.given_up and tick.attempt == self.model.given_up[key]:
                assert not tick.owed, f"{tick} was given up"
                assert "given up: " in (tick.error or ""), f"{tick} was given up and does not say so"

    def check_end(self):
        """All has had the time that it needs."""
        assert self.model.owed == {}, f"never tried again: {self.model.owed}"
        with self.opened() as store:
            assert [tick for tick in store.history(limit=10**6) if tick.outcome == RUNNING] == []
            self.check_store(store)
            records = {(tick.job_id, tick.due_us) for tick in store.history(limit=10**6)}
            assert self.model.begun.keys() <= records, f"no record of {self.model.begun.keys() - records}"

    def check_attempts(self):
        """They come one after another; one is left out if its process died before it could begin."""
        for tick, attempts in self.model.begun.items():
            assert all(later > earlier for earlier, later in pairwise(attempts)), f"{tick}: {attempts}"
