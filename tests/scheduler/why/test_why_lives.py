"""Random lives with limits, pauses, overlaps, deaths and downtimes: `why` is right for every due instant.

The tasks write their own log: which tick began when, and how it ended. It says what the answer must be.
"""

from datetime import timedelta

import anyio
from attrs import define, frozen
from hypothesis import HealthCheck, given, settings, strategies as st

from kit import examples
from schedule import parse
from scheduler import MissedReason, Outcome, Overlap, RunMissed, Scheduler, Verdict, current_run
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import ManualClock

SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=examples(100))

LIMITS = {"one": 1, "two": 2, "host:*": 1}
NEEDS = [None, "one", "one", "two", "host:a"]
SCHEDULES = ["@every 10s", "@every 7s", "@every 30s", "* * * * *", "*/2 * * * *", "@after 13s"]
LATE = timedelta(seconds=0.1)
RAN = {Verdict.RAN, Verdict.RAN_LATE}


@frozen
class Told:
    """A job: what it needs, how long it takes, and its rules."""

    schedule: str
    takes: float
    needs: str | None
    options: dict


@define
class Entry:
    """What a task says of one run of it. `end`: None while it goes on; `is_whole`: it came to its own end."""

    job: str
    due: object
    attempt: int
    began: object
    process: int
    end: object = None
    is_whole: bool = False

    def is_over(self, moment):
        """Return whether it had ended before that moment."""
        return self.end is not None and self.end < moment

    def held_at(self, moment):
        """Return whether it held its units then."""
        return self.began <= moment and (self.end is None or self.end > moment)


class World:
    """One store, one clock, and processes one after another."""

    def __init__(self, jobs, rest):
        self.clock = ManualClock()
        self.store = MemoryStore()
        self.jobs = {f"job-{number}": told for number, told in enumerate(jobs)}
        self.rest = rest
        self.log = []
        self.alive = []
        self.missed = {}
        self.paused = []

    async def work(self, takes):
        """Take a while, and log it."""
        run = current_run()
        entry = Entry(run.job_id, run.due, run.attempt, self.clock.now(), len(self.alive))
        self.log.append(entry)
        try:
            await self.clock.sleep(takes)
            entry.is_whole = True
        finally:
            entry.end = self.clock.now()

    def process(self):
        """Return a scheduler that has all jobs."""
        s = Scheduler(store=self.store, clock=self.clock, limits=LIMITS, crash_floor=self.rest)
        s.register("work", self.work)
        s.listen(self.note, RunMissed)
        for name, told in self.jobs.items():
            needs = () if told.needs is None else told.needs
            s.add(
                "work", told.schedule, id=name, args=[told.takes], needs=needs, tags=["all"], on_conflict="keep",
                **told.options,
            )  # fmt: skip
        return s

    def job(self, s, number):
        """Return one of the jobs."""
        return s.get(f"job-{number % len(self.jobs)}")

    def note(self, missed):
        """Remember why a tick was missed, as listeners hear it."""
        self.missed.setdefault(missed.job_id, []).append(missed)

    async def live(self, s, verbs):
        """Let things happen to a process."""
        for verb, what in verbs:
            match verb:
                case "travel":
                    await self.clock.travel(what)
                case "pause":
                    s.pause(tag="all", reason="why not") if what is None else self.job(s, what).pause("off")
                case "resume":
                    s.resume(tag="all") if what is None else self.job(s, what).resume()

    async def run(self, lives):
        """Live all lives, and ask in the last."""
        for verbs, dies, downtime in lives:
            s = self.process()
            self.alive.append(self.clock.now())
            async with s:
                await self.clock.travel(0)
                await self.live(s, verbs)
                await s.flush()
                if dies:
                    self.store = self.store.another()
                    self.store.open(0, lambda: None)
                s.stop(grace=0)
            self.clock.advance(downtime)
        self.alive.append(self.clock.now())
        async with self.process() as s:
            await self.clock.travel(25)
            await s.flush()
            await self.judge(s)
            s.stop(grace=0)

    # -- what must be so -----------------------------------------------------------------------------------------------

    async def judge(self, s):
        """Ask about each tick that ran, and each start of each schedule."""
        for name, told in self.jobs.items():
            ran = {}
            for entry in self.log:
                if entry.job == name:
                    ran[entry.due] = entry
            for due, entry in ran.items():
                self.judge_run(await s.why(name, due), entry, told)
            for due in self.slots(name, told) - ran.keys():
                self.judge_missed(await s.why(name, due), name)
            for due in self.slots(name, told):
                if due == self.clock.now():
                    continue
                between = await s.why(name, due + timedelta(microseconds=1))
                assert between.verdict in {Verdict.NOT_DUE, Verdict.TO_COME}, between
                assert between.previous == due

    def slots(self, name, told):
        """Return the due instants of a schedule, since the job was added."""
        schedule, found = parse(told.schedule).bind(name), set()
        slot = None if told.schedule.startswith("@after") else schedule.next(self.alive[0])
        while slot is not None and slot <= self.clock.now():
            found.add(slot)
            slot = schedule.next(slot)
        return found

    def judge_run(self, why, entry, told):
        """Compare the answer for a tick with what its task says."""
        assert why.due == entry.due
        assert why.attempt == entry.attempt or (why.verdict is Verdict.WAITS and why.attempt > entry.attempt)
        if why.verdict is Verdict.WAITS:
            assert not entry.is_whole
            return
        if entry.end is None:
            assert why.verdict is Verdict.RUNS, why
            assert why.started == entry.began
            return
        if not entry.is_whole and why.verdict is Verdict.CUT_OFF:
            assert why.outcome in {Outcome.CRASHED, Outcome.CANCELLED}
            return
        assert why.started == entry.began, why
        assert why.outcome is (Outcome.SUCCEEDED if entry.is_whole else Outcome.CANCELLED), why
        is_late = entry.began - entry.due > LATE
        if entry.attempt == 1:
            assert why.verdict is (Verdict.RAN_LATE if is_late else Verdict.RAN), why
        if why.verdict is Verdict.RAN_LATE and entry.attempt == 1:
            self.judge_late(why, entry, told)

    def judge_late(self, why, entry, told):
        """Compare what a late run waited for with who held its limit."""
        if self.alive[entry.process - 1] > entry.due:
            assert why.waited is None or why.waited.limit == told.needs
            return
        earlier = [
            each
            for each in self.log
            if each.job == entry.job and each.due < entry.due and (each.end is None or each.end > entry.due)
        ]
        holders = [
            each
            for each in self.log
            if each is not entry
            and each.process == entry.process
            and self.jobs[each.job].needs == told.needs
            and each.held_at(entry.due)
        ]
        if earlier:
            assert why.run is not None or why.waited is not None, why
        elif told.needs is not None and len(holders) >= self.size(told.needs):
            assert why.waited.limit == told.needs, why
            self.judge_holders(why, entry)

    def judge_holders(self, why, entry):
        """Each holder held the limit as the run began to wait, no holder is left out, and the last one made room."""
        needs, at, waited = self.jobs[entry.job].needs, why.waited.at, why.waited
        others = [each for each in self.log if each is not entry and self.jobs[each.job].needs == needs]
        found = {(each.job_id, each.due, each.since) for each in waited.holders}
        may = {(each.job, each.due, each.began) for each in others if each.began <= at and not each.is_over(at)}
        must = {(each.job, each.due, each.began) for each in others if each.began < at and not each.is_over(at)}
        assert must <= found <= may, why
        last = waited.after
        assert (last.job_id, last.due, entry.began) in {(each.job, each.due, each.end) for each in others}, why
        assert all(f"{each.job_id!r} since" in str(why) or each.due == last.due for each in (*waited.holders, last))

    @staticmethod
    def size(needs):
        """Return the units of a limit."""
        return LIMITS.get(needs, 1)

    def judge_missed(self, why, name):
        """Compare the answer for a tick without a run with what listeners heard, and with the log."""
        assert why.verdict not in RAN, why
        assert why.verdict not in {Verdict.NOT_DUE, Verdict.PRUNED, Verdict.GONE, Verdict.RUNS}, why
        heard = [each for each in self.missed.get(name, ()) if each.first_due <= why.due <= each.last_due]
        if why.verdict is Verdict.NOT_KNOWN:
            assert not heard, why
            raise AssertionError(str(why))
        if heard:
            assert why.reason in {each.reason for each in heard}, (why, heard)
        if why.verdict is Verdict.OVERLAPPED:
            assert why.reason is MissedReason.OVERLAP
            assert why.run is not None, why
        if why.reason is MissedReason.NO_ROOM:
            assert why.waited is not None or why.run is not None, why
            assert why.waited is None or why.waited.limit == self.jobs[name].needs
        if why.run is not None and why.reason is MissedReason.OVERLAP:  # else that run may have waited itself
            runs = [each for each in self.log if each.job == name and each.due == why.run]
            assert any(each.began <= why.decided and (each.end is None or each.end >= why.due) for each in runs), why


overlaps = st.sampled_from(
    [{}, {"overlap": Overlap.QUEUE}, {"overlap": Overlap.REPLACE}, {"overlap": Overlap.ALLOW, "max_running": 2}]
)
rules = st.sampled_from([{}, {}, {"missed": "skip", "grace": 3}, {"missed": "all", "catch_up": 3}])
deliveries = st.sampled_from([{}, {"delivery": "at_least_once"}])
jobs = st.lists(
    st.builds(
        Told,
        schedule=st.sampled_from(SCHEDULES),
        takes=st.sampled_from([0, 1, 4, 12, 45]),
        needs=st.sampled_from(NEEDS),
        options=st.tuples(overlaps, rules, deliveries)
        .map(lambda parts: {**parts[0], **parts[1], **parts[2]})
        .filter(lambda each: not (each.get("overlap") is Overlap.REPLACE and each.get("missed") == "all")),
    ),
    min_size=1,
    max_size=4,
)
travels = st.tuples(st.just("travel"), st.sampled_from([1, 5, 20, 61]))
who = st.sampled_from([None, 0, 1, 2])
verbs = st.one_of(travels, travels, st.tuples(st.sampled_from(["pause", "resume"]), who))
lives = st.lists(
    st.tuples(st.lists(verbs, max_size=6), st.booleans(), st.sampled_from([0, 1, 15, 90])), min_size=1, max_size=3
)


@SETTINGS
@given(jobs=jobs, lives=lives, rest=st.sampled_from([0.001, 30, 300]))
def test_why_is_right_for_every_due_instant(jobs, lives, rest):
    """As the log of the tasks says."""
    anyio.run(World(jobs, rest).run, lives)
