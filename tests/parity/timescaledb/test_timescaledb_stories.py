"""Random lives of schedulers over one store, stopped and killed, and what has to hold in all of them: TimescaleDB's
invariant of the counts, its five minutes after a crash, and that no tick runs twice without a reason.
"""

from collections import Counter
from datetime import timedelta
from functools import partial
from itertools import pairwise

import anyio
import pytest
from attrs import define
from hypothesis import given, settings, strategies as st

from schedule import After, Calendar, Cron, Every, Missed
from scheduler import Delivery, JobState, Outcome, Overlap, Retry, RunEnded, RunStarted, current_run
from timerqueue.testing import START, ManualClock
from timescaledb_lives import Lives, seconds

FLOOR = 300
ROUNDING = 1e-4

schedules = st.sampled_from(
    [
        After("7s"),
        After("100s"),
        Every("10s"),
        Every("60s", anchor=START),
        Every("90s", jitter="20s"),
        Cron("* * * * *"),
        Calendar("1 day", origin=START + timedelta(minutes=3)),
    ]
)
retries = st.sampled_from(
    [None, Retry.timescaledb("20s"), Retry.timescaledb("2s", max_retries=3), Retry.constant("5s")]
)
tasks = st.sampled_from(["nothing", "fail", "sleep", "alternate"])
verbs = st.sampled_from(["none", "touch", "row", "pause", "interval", "add again"])


@define
class Line:
    """One begun run, as the task itself has seen it. `end`: None while it goes on, and for ever if it was killed."""

    job_id: str
    due: float
    attempt: int
    fence: int
    begun: float
    end: str | None = None


class Story:
    """Lives, and what the tasks have seen of them."""

    def __init__(self):
        self.clock = ManualClock()
        self.events = []
        self.lines = []
        self.lives = Lives(self.clock, self.events.append)
        self.lives.tasks = {
            "nothing": partial(self.work, 0, "ok"),
            "fail": partial(self.work, 0, "failed"),
            "sleep": partial(self.work, 13, "ok"),
            "alternate": partial(self.work, 3, None),
        }

    async def work(self, length, end):
        """Take so long and end so; None: now like this, now like that."""
        run = current_run()
        end = end or ("failed" if len(self.lines) % 2 else "ok")
        line = Line(run.job_id, run.due.timestamp(), run.attempt, run.fence, self.clock.wall())
        self.lines.append(line)
        try:
            if length:
                await self.clock.sleep(length)
        except BaseException:
            line.end = "cancelled"
            raise
        line.end = end
        if end == "failed":
            raise ValueError

    async def tell(self, jobs, lives):
        """Let the jobs be added in the first life and live through all of them."""
        for number, (length, killed, verb) in enumerate(lives):
            was = len(self.lines)
            async with self.lives.life(killed=killed, seed=number) as s:
                if not number:
                    for id, job in enumerate(jobs):
                        s.add(id=f"{id}", **job)
                await self.clock.travel(length / 2)
                self.act(s, verb, jobs[0])
                await self.clock.travel(length / 2)
                if killed:
                    unfinished = [line for line in self.lines[was:] if line.end is None]
                self.check(s)
            if killed:
                for line in unfinished:
                    line.end = "killed"
            self.clock.advance(number * 11)
        async with self.lives.life() as s:
            await self.clock.travel(1)
            self.check(s)

    def act(self, s, verb, options):
        """Meddle with the first job in a way that is no reason to start it earlier."""
        job = next((job for job in s.jobs() if job.id == "0"), None)
        if job is None:
            return
        if verb == "touch":
            job.update(priority=job.policy.priority + 1)
        elif verb == "row":
            row = next(row for rows in self.lives.store.load() for row, _ in rows if row.id == "0")
            self.lives.store.edit(row._replace(name=f"{len(self.events)}"))
        elif verb == "pause":
            s.pause("x", until=self.clock.now() + timedelta(seconds=3))
        elif verb == "interval":
            job.update(schedule=After("9s"))
        elif verb == "add again":
            s.add(id="0", on_conflict="update", **options)

    def check(self, s):
        """What has to hold whenever nothing is about to happen."""
        for job in s.jobs():
            counts = job.statistics()
            lines = [line for line in self.lines if line.job_id == job.id]
            assert counts.runs == counts.successes + counts.failures + counts.crashes + counts.running == len(lines)
            assert counts.successes == sum(line.end == "ok" for line in lines)
            assert counts.failures == sum(line.end in {"failed", "cancelled"} for line in lines)
            assert counts.crashes == sum(line.end == "killed" for line in lines)
            assert counts.running == sum(line.end is None for line in lines)
            if job.state is JobState.SCHEDULED:
                assert job.next_start is not None
                assert job.next_start.timestamp() >= self.clock.wall() - ROUNDING
        self.check_ticks(s)
        self.check_floors()

    def check_ticks(self, s):
        """A tick begins once for each of its attempts, each with a higher fence, and never before it is due."""
        fences = [line.fence for line in self.lines]
        assert all(earlier < later for earlier, later in pairwise(fences))
        attempts = [(line.job_id, line.due, line.attempt) for line in self.lines]
        assert len(set(attempts)) == len(attempts)
        for line in self.lines:
            assert line.begun >= line.due - ROUNDING
        for job in s.jobs():
            if job.policy.retry is None and job.policy.delivery is Delivery.AT_MOST_ONCE:
                assert {line.attempt for line in self.lines if line.job_id == job.id} <= {1}

    def check_floors(self):
        """No job begins in the five minutes after its crash was found."""
        floors = {}
        for event in self.events:
            if isinstance(event, RunStarted):
                assert event.started.timestamp() >= floors.get(event.job_id, 0) - ROUNDING
            elif isinstance(event, RunEnded) and event.outcome is Outcome.CRASHED:
                floors[event.job_id] = event.ended.timestamp() + FLOOR


jobs = st.fixed_dictionaries(
    {
        "func": tasks,
        "schedule": schedules,
        "retry": retries,
        "delivery": st.sampled_from(Delivery),
        "start": st.sampled_from(["now", None]),
        "tags": st.just(("x",)),
    }
)
lives = st.tuples(st.sampled_from([1.5, 10, 40, 200, 330]), st.booleans(), verbs)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@settings(max_examples=25)
@given(st.lists(jobs, min_size=1, max_size=3), st.lists(lives, min_size=1, max_size=6))
def test_in_every_story_the_counts_and_the_ticks_are_right(backend, jobs, lives):
    """At each restart and at each end: counts are those of the runs that there were, and a crash is waited out."""
    anyio.run(Story().tell, jobs, lives, backend=backend)


@st.composite
def options_of_a_grid(draw):
    """Give the options of a job that starts every ten seconds."""
    missed = draw(st.sampled_from(Missed))
    overlaps = st.sampled_from([overlap for overlap in Overlap if (missed, overlap) != (Missed.ALL, Overlap.REPLACE)])
    return {
        "func": "sleep",
        "args": (draw(st.sampled_from([0, 3, 13, 25])),),
        "schedule": Every(10, anchor=START),
        "missed": missed,
        "overlap": draw(overlaps),
        "delivery": draw(st.sampled_from(Delivery)),
        "retry": draw(st.sampled_from([None, Retry.constant("3s")])),
    }


async def records_of_slots(options, lives):
    """Give how many records each slot has, one of a run that has not begun counting as one, and the last slot so far.

    None for that: the job is quarantined. There is room for one run at a time, and another job that takes it often.
    """
    clock = ManualClock()
    played = Lives(clock, lambda _event: None)
    for number, (length, killed, gap) in enumerate([*lives, (0.5, False, 0)]):
        async with played.life(killed=killed, limit=1) as s:
            if not number:
                s.add(id="a", **options)
                s.add("sleep", Every(20, anchor=START), id="other", args=(9,))
            await clock.travel(length)
            await s.flush()
            records = await s.history("a", limit=100_000)
            job = s.get("a")
            waiting = [run.due_us for run in job.runs] + [due_us for due_us, _ in job.backlog or ()]
            floor = job.floor
        clock.advance(gap)
    counts = Counter(
        slot
        for record in records
        for slot in range(round(seconds(record.due)), round(seconds(record.last_due)) + 1, 10)
    )
    for due_us in waiting:
        slot = round(due_us * 1e-6 - START.timestamp())
        counts[slot] = counts[slot] or 1
    last = int(seconds(clock.now())) // 10 * 10
    if floor is not None and floor.first_us is not None:  # what it costs is missed when it is passed
        last = round(floor.first_us * 1e-6 - START.timestamp()) - 10
    return counts, None if job.state is JobState.DISABLED else last


@settings(max_examples=25)
@given(
    options_of_a_grid(),
    st.lists(
        st.tuples(st.sampled_from([1.5, 12, 35, 200, 330]), st.booleans(), st.sampled_from([0, 3, 10, 47])),
        min_size=1,
        max_size=5,
    ),
)
def test_in_every_story_each_slot_has_one_record(options, lives):
    """Run or missed, over stops, deaths and the time between them: none is lost and none is there twice.

    After a crash those of the next five minutes are recorded when these are over.
    """
    counts, last = anyio.run(records_of_slots, options, lives)
    assert set(counts.values()) <= {1}
    if last is not None:
        assert {slot for slot in counts if slot <= last} == set(range(10, last + 1, 10))
