"""One process over a store, and all that may befall it: a program of steps, carried out one after another.

What is checked at its end holds whatever the steps were: see `Life.check`.
"""

import logging
from collections import Counter, defaultdict, deque
from contextlib import contextmanager, suppress
from datetime import timedelta
from tempfile import TemporaryDirectory

import pytest
from anyio.to_thread import run_sync
from hypothesis import HealthCheck, given, settings, strategies as st

from schedule import After, Cron, Every, Missed
from scheduler import (
    AlreadyStopped,
    InvalidJob,
    JobNotFound,
    MissedReason,
    Outcome,
    Overlap,
    Retry,
    RunEnded,
    RunMissed,
    RunStarted,
    Scheduler,
    current_run,
)
from scheduler.stores.memory import MemoryStore
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing import FlakyStore
from timerqueue.testing import START, ManualClock

SCHEDULES = {
    "every": Every("10s", anchor=START),
    "cron": Cron("*/10 * * * * *"),
    "after": After("10s"),
    "other": Every("7s", anchor=START),
}
"""Every one in its kind; the first two have a slot each ten seconds."""


class LateWriter:
    """A writer in which calls, answers, or both are held up: what a thread does that waits for a disk or a network."""

    def __init__(self):
        self.holds = None
        self._tasks = deque()
        self._is_busy = False

    def submit(self, call, done):
        self._tasks.append([call, done, None])
        if self.holds is None:
            self.go_on()
        elif self.holds == "answers":
            self._carry_out()

    def go_on(self, most=None):
        """Answer so many of those that wait, or all."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._tasks and most != 0:
                self._carry_out()
                _, done, result = self._tasks.popleft()
                done(*result)
                most = None if most is None else most - 1
        finally:
            self._is_busy = False

    def close(self, _wait, _let_go):
        """Nobody is there any more to be answered."""
        while self._tasks:
            self._carry_out()
            self._tasks.popleft()
        return True

    def _carry_out(self):
        task = self._tasks[0]
        if task[2] is None:
            try:
                task[2] = task[0](), None
            except Exception as exc:  # noqa: BLE001 - as a writer does
                task[2] = None, exc


class Errors(logging.Handler):
    """What was logged as an error."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


ids = st.sampled_from("ab")


def fitting(options):
    """Leave out what is refused beside the rest."""
    if options.get("overlap") is Overlap.REPLACE and options.get("missed") is Missed.ALL:
        return {name: value for name, value in options.items() if name != "missed"}
    return options | ({"max_running": 2} if options.get("overlap") is Overlap.ALLOW else {})


options = st.fixed_dictionaries(
    {},
    optional={
        "overlap": st.sampled_from(list(Overlap)),
        "missed": st.sampled_from(list(Missed)),
        "catch_up": st.just(3),
        "grace": st.sampled_from(["1s", "1h"]),
        "timeout": st.sampled_from(["4s", None]),
        "retry": st.sampled_from([None, Retry.constant("3s", max_retries=2)]),
        "delivery": st.sampled_from(["at_most_once", "at_least_once"]),
        "needs": st.sampled_from([(), "x", "y", ("x", "y")]),
        "priority": st.sampled_from([-1, 0, 2]),
    },
).map(fitting)
durations = st.sampled_from([0, 0, 3, 12, 25])
verbs = st.one_of(
    st.tuples(st.just("pause"), ids),
    st.tuples(st.just("resume"), ids),
    st.tuples(st.just("run_now"), ids),
    st.tuples(st.just("remove"), ids),
    st.tuples(st.just("set_next_start"), ids, st.sampled_from([0, 0.5, 4])),
    st.tuples(st.just("pause_all")),
    st.tuples(st.just("resume_all")),
    st.tuples(st.just("update"), ids, st.sampled_from([*SCHEDULES, None]), options, durations),
    st.tuples(st.just("add"), ids, st.sampled_from([*SCHEDULES]), options, durations,
              st.sampled_from(["update", "replace", "keep"])),
    st.tuples(st.just("stop"), st.sampled_from([0, 3, 30])),
)  # fmt: skip
steps = st.one_of(
    st.tuples(st.just("travel"), st.sampled_from([0, 0.01, 0.06, 1, 4, 9.99, 10, 25])),
    st.tuples(st.just("travel"), st.sampled_from([0, 0.01, 0.06, 1, 4, 9.99, 10, 25])),
    st.tuples(st.just("verb"), verbs, st.booleans()),
    st.tuples(st.just("verb"), verbs, st.booleans()),
    st.tuples(st.just("set_clock"), st.sampled_from([-25, -10, -0.75, 0.75, 10, 33])),
    st.tuples(st.just("held_up"), st.sampled_from([0.5, 12, 25, 65])),
    st.tuples(st.just("hold"), st.sampled_from(["calls", "answers"])),
    st.tuples(st.just("answer")),
    st.tuples(st.just("let_go")),
    st.tuples(st.just("break"), st.sampled_from(["before", "after"])),
    st.tuples(st.just("mend")),
)
jobs = st.tuples(st.sampled_from([*SCHEDULES]), options, durations)
programs = st.tuples(st.integers(1, 3), jobs, jobs, st.lists(steps, max_size=25))


def left_alone(jobs, todo):
    """Tell which of them have a slot each ten seconds that nobody moves or holds."""
    verbs = [step[1] for step in todo if step[0] == "verb"]
    if any(step[0] == "set_clock" for step in todo) or any(name in {"pause_all", "resume_all"} for name, *_ in verbs):
        return set()
    touched = {rest[0] for _, *rest in verbs if rest}
    return {id for id, (schedule, *_) in jobs.items() if schedule in {"every", "cron"} and id not in touched}


def is_missed(event):
    """Tell whether ticks have no run, and no other record either."""
    return isinstance(event, RunMissed) and event.reason is not MissedReason.REPEATED


class Life:
    """One process, and what is known of it."""

    def __init__(self, store):
        self.clock = ManualClock()
        self.store = FlakyStore(store or MemoryStore(), is_immediate=True)
        self.under = store
        self.events = []
        self.begun = []
        self.begun_after_stop = []
        self.begun_unrecorded = []
        self.is_stopped = False
        self.renewed = set()
        self.regular = ()
        """Jobs with a slot each ten seconds that are left alone, as the clock is."""
        self.writers = [LateWriter()]
        self.errors = Errors()

    async def work(self, seconds):
        run = current_run()
        if self.is_stopped:
            self.begun_after_stop.append(run.job_id)
        self.begun.append((run.job_id, run.due, run.attempt))
        records = self.under.history(run.job_id, limit=1_000) if self.under else ()
        if self.under and (round(run.due.timestamp() * 1e6), run.attempt, "running") not in {
            (tick.due_us, tick.attempt, tick.outcome) for tick in records
        }:
            self.begun_unrecorded.append(run.job_id)
        if seconds == 3:
            await self.clock.sleep(1)
            raise ValueError(seconds)
        await self.clock.sleep(seconds)

    def scheduler(self, limit):
        s = Scheduler(store=self.store if self.under else None, clock=self.clock, limit=limit, limits={"x": 1, "y": 1})
        s.register("work", self.work)
        s.listen(self.events.append)
        return s

    @contextmanager
    def _watched(self):
        logger = logging.getLogger("scheduler")
        logger.addHandler(self.errors)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("scheduler._assembly_store.InlineWriter", self._writer)
                yield
        finally:
            logger.removeHandler(self.errors)

    def _writer(self):
        self.writers.append(LateWriter())
        return self.writers[-1]

    async def live(self, program):
        limit, a, b, todo = program
        self.regular = left_alone({"a": a, "b": b}, todo)
        with self._watched():
            async with self.scheduler(limit) as s:
                for id, (schedule, options, seconds) in {"a": a, "b": b}.items():
                    s.add("work", SCHEDULES[schedule], id=id, args=(seconds,), **options)
                for step in todo:
                    await self._do(s, *step)
                self.is_stopped = True
                self.store.fail_on = ()
                s.stop("5s")
                await self.clock.travel(1)
                self.writers[-1].holds = None
                self.writers[-1].go_on()
            self.statistics = {job.id: job.statistics() for job in s.jobs()}

    async def _do(self, s, kind, *args):
        writer = self.writers[-1]
        match kind, args:
            case "travel", [seconds]:
                await self.clock.travel(seconds)
            case "held_up", [seconds]:  # nobody had a turn meanwhile
                self.clock.advance(seconds)
                await self.clock.travel(0)
            case "verb", [(name, *rest), in_thread]:
                call = self._verb(s, name, *rest)
                await (run_sync(call) if in_thread else _called(call))
                await self.clock.travel(0)
            case "set_clock", [seconds]:
                self.clock.step(seconds)
                await self.clock.travel(0)
            case "hold", [what]:
                writer.holds = what
            case "answer", []:
                writer.go_on(1)
                await self.clock.travel(0)
            case "let_go", []:
                writer.holds = None
                writer.go_on()
                await self.clock.travel(0)
            case "break", [when] if not self.is_stopped:
                self.store.before_or_after = when
                self.store.fail_on = range(self.store.counted + 1, self.store.counted + 10_000)
            case "mend", []:
                self.store.fail_on = ()

    def _verb(self, s, name, *rest):
        def call():
            with suppress(JobNotFound, AlreadyStopped, InvalidJob):
                self._call(s, name, *rest)

        return call

    def _call(self, s, name, *rest):  # noqa: C901 - a list of verbs
        match name, rest:
            case "stop", [grace]:
                self.store.fail_on = ()  # or all would rightly be lost, and be told as that
                s.stop(grace)
                self.is_stopped = True
            case "pause_all", []:
                s.pause()
            case "resume_all", []:
                s.resume()
            case "set_next_start", [id, seconds]:
                s.get(id).set_next_start(self.clock.now() + timedelta(seconds=seconds))
            case "update", [id, schedule, options, seconds]:
                changes = dict(options)
                if schedule is not None:
                    changes["schedule"] = SCHEDULES[schedule]
                s.get(id).update(args=(seconds,), **changes)
            case "add", [id, schedule, options, seconds, on_conflict]:
                if on_conflict == "replace":
                    self.renewed.add(id)
                s.add("work", SCHEDULES[schedule], id=id, args=(seconds,), on_conflict=on_conflict, **options)
            case _, [id]:
                if name == "remove":
                    self.renewed.add(id)
                getattr(s.get(id), name)()

    async def live_again(self):
        """The next process: what was due is made up for, and whatever is recorded anew stands beside the rest."""
        self.is_stopped = False
        with self._watched():
            async with self.scheduler(10) as s:
                s.resume()
                await self.clock.travel(40)
            self.statistics = {job.id: job.statistics() for job in s.jobs()}

    def check_slots(self):
        """No slot of a job that was left alone is told of twice, and none is passed over."""
        _, ticks = self.records()
        start = round(START.timestamp())
        for id in self.regular:
            dues = [
                tick.due_us / 1e6 - start + 10 * n for tick in ticks if tick.job_id == id for n in range(tick.count)
            ]
            assert dues == [10 * (n + 1) for n in range(len(dues))], id

    def records(self):
        self.under.open(0, lambda: None)
        try:
            states = {row.id: state for chunk in self.under.load() for row, state in chunk}
            return states, list(reversed(self.under.history(limit=100_000)))
        finally:
            self.under.close()

    def check(self):
        """Every tick has one record, every record an event, every count its records; and nothing begins after stop."""
        assert self.begun_after_stop == []
        assert self.begun_unrecorded == []
        assert self.errors.texts == []
        self.check_told()
        if self.under:
            self.check_recorded()

    def check_recorded(self):
        states, ticks = self.records()
        by_job = defaultdict(list)
        for tick in ticks:
            by_job[tick.job_id].append(tick)
        assert [tick for tick in ticks if tick.outcome == "running"] == []
        self.check_runs(ticks)
        self.check_missed(ticks)
        for id, job in self.statistics.items():
            if id in self.renewed:
                continue
            found = by_job[id]
            told = (job.runs, job.missed)
            assert told == (
                sum(tick.attempt for tick in found),
                sum(tick.count for tick in found if tick.outcome == "missed"),
            ), id
            assert job.runs == job.successes + job.failures
            state = states[id]
            assert (state.runs, state.missed, state.successes, state.failures) == (*told, job.successes, job.failures)

    def check_told(self):
        """The counts of each job are those of its events."""
        for id, job in self.statistics.items():
            if id not in self.renewed:
                of_job = [event for event in self.events if getattr(event, "job_id", None) == id]
                ended = [event.outcome for event in of_job if isinstance(event, RunEnded)]
                missed = sum(event.count for event in of_job if is_missed(event))
                assert (job.runs, job.successes, job.missed) == (len(ended), ended.count(Outcome.SUCCEEDED), missed), id

    def check_runs(self, ticks):
        starts = Counter(
            (event.job_id, event.due, event.attempt) for event in self.events if isinstance(event, RunStarted)
        )
        ends = Counter((event.job_id, event.due, event.attempt) for event in self.events if isinstance(event, RunEnded))
        assert starts == ends
        assert max(starts.values(), default=1) == 1
        assert len(self.begun) == len(set(self.begun))
        records = {(tick.job_id, tick.due_us): tick.attempt for tick in ticks if tick.attempt}
        last = defaultdict(int)
        for id, due, attempt in starts:
            tick = id, round(due.timestamp() * 1e6)
            last[tick] = max(last[tick], attempt)
        assert records == dict(last)

    def check_missed(self, ticks):
        told, found = Counter(), Counter()
        for event in self.events:
            if is_missed(event):
                told[event.job_id, event.reason.value] += event.count
        for tick in ticks:
            if tick.outcome == "missed":
                found[tick.job_id, tick.reason] += tick.count
        assert told == found


async def _called(call):
    call()


async def play(program, store):
    """Live by the program, look at what is left, and let the next process go on with it."""
    life = Life(store)
    await life.live(program)
    life.check()
    await life.live_again()
    life.check()
    life.check_slots()


some = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=settings().max_examples)
fewer = settings(some, max_examples=-(-settings().max_examples // 5))


@some
@given(program=programs)
async def test_records_events_and_counts_agree_in_memory(program):
    """Whatever befalls it, and whenever it is stopped."""
    await play(program, MemoryStore())


@fewer
@given(program=programs)
async def test_events_and_counts_agree_without_a_store(program):
    """What is remembered by nobody is told all the same."""
    life = Life(None)
    await life.live(program)
    life.check()


@fewer
@given(program=programs)
async def test_records_events_and_counts_agree_in_sqlite(program):
    """The same over a store that may be read by others."""
    with TemporaryDirectory() as folder:
        await play(program, SQLiteStore(f"{folder}/jobs.db", durability="fast"))
