"""A seeded year is to the letter what it has been: each event of each job, on asyncio and on trio.

The folder seeded_year/ holds digests of each year, by month and by job, and the beginning of one job's year as text.
To see what has changed, have the version before and this one print the whole year, and compare the two:

    .venv-3.11/bin/python tests/scheduler/simulated/test_seeded_year.py verbs > now.txt

After a change on purpose, write the folder again:

    .venv-3.11/bin/python tests/scheduler/simulated/test_seeded_year.py
"""

import logging
import re
import sys
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from itertools import groupby
from pathlib import Path
from random import Random

import pytest

import scheduler as api
from schedule import After, At, Calendar, Cron, Every, Missed, Window
from scheduler import Outcome, Overlap, Retention, Retry
from scheduler.stores.memory import MemoryStore
from scheduler.testing import simulate
from timerqueue.testing import START

HERE = Path(__file__).parent
SPEC = spec_from_file_location("seeded_years", HERE / "seeded_years.py")
years = module_from_spec(SPEC)
SPEC.loader.exec_module(years)

FIELDS = {
    api.RunStarted: {"due", "started", "attempt", "lateness"},
    api.RunEnded: {"due", "started", "ended", "attempt", "lateness", "duration", "outcome", "error", "results",
                   "retry_at"},
    api.RunMissed: {"first_due", "last_due", "count", "reason", "is_exact"},
    api.RunAbandoned: {"due", "seconds"},
    api.JobAdded: {"stands_for"},
    api.JobChanged: {"state", "reason"},
    api.JobParked: {"error"},
    api.ScopePaused: {"scope", "reason", "until"},
    api.ScopeResumed: {"scope"},
    api.ClockJumped: {"at", "seconds"},
    api.StoreDown: {"at", "error", "is_taken_over"},
    api.SchedulerStopped: {"at", "cut_off"},
    api.JobRemoved: set(), api.JobFinished: set(), api.SchedulerStarted: {"at"},
}  # fmt: skip
"""What is written of each event. A field that comes later has a test of its own."""

OUR_MODULES = re.compile(r"\b(scheduler|schedule|timerqueue)\.(\w+\.)*(?=[A-Z])")
"""Before the name of an error: which file it lies in is no matter of the user's."""

COUNTS = (
    "runs", "successes", "failures", "crashes", "timeouts", "cancellations", "missed", "launch_failures",
    "consecutive_failures", "consecutive_crashes", "total_duration", "total_duration_failures", "lateness_sum",
    "lateness_max", "last_start", "last_finish", "last_successful_finish", "last_outcome", "last_error",
)  # fmt: skip
RECORD = (
    "attempt",
    "outcome",
    "started",
    "ended",
    "lateness",
    "error",
    "reason",
    "count",
    "last_due",
    "result",
    "owed",
)
INSTANTS = {"due", "started", "ended", "first_due", "last_due", "retry_at", "until", "stands_for", "at"} | {
    name for name in COUNTS if name.startswith("last_") and name not in {"last_outcome", "last_error"}
}
SAME_AS = {"due": "started", "last_due": "due"}
"""These need not be written if they are the same as those."""
USUAL = {
    "attempt": 1,
    "count": 1,
    "is_exact": True,
    "owed": False,
    "is_taken_over": False,
    "outcome": Outcome.SUCCEEDED,
}

YEARS = {
    "overlap": (years.overlap, {}),
    "missed": (years.missed, {"limits": {"room": 2}, "steps": years.CLOCK_STEPS}),
    "retries": (years.retries, {}),
    "pauses": (years.pauses, {}),
    "verbs": (years.verbs, {"limits": {"room": 1}}),
    "schedules": (years.schedules, {"steps": years.CLOCK_STEPS}),
    "subtasks": (years.subtasks, {"limits": {"part": 2}, "max_subtasks": 20}),
    "limits": (years.limits, {"limit": 5, "limits": {"x": 3, "host:*": 2}, "kill_after": "1h"}),
}
"""What each year is, and the options of its scheduler."""

READABLE = 40
"""Lines of a year that its file shows as text."""

STEPS_BY_LOT = [*years.CLOCK_STEPS, ("250d", 40 * 86_400), ("310d", -9 * 86_400)]


class Drawn:
    """A year in which all of it is drawn by lot: options, schedules, what is done and when it is done."""

    def __init__(self, jobs, verbs, seed):
        self.jobs, self.verbs, self.random = jobs, verbs, Random(seed)

    def __call__(self, s, clock, note):
        """Add the jobs, some with every option that there is."""
        work, random = years.Work(clock), self.random
        for number in range(self.jobs):
            kind = random.choice([work.takes, work.fails, work.exits, work.returns_subtasks, work.hangs, work.takes])
            rule, overlap = random.choice(list(Missed)), random.choice(list(Overlap))
            if overlap is Overlap.REPLACE and rule is Missed.ALL:
                rule = Missed.SKIP
            s.add(
                kind,
                self.schedule(number),
                id=f"drawn-{number}",
                args=[random.randrange(60) for _ in range(3)] if kind in (work.takes, work.fails) else (),
                tags=random.sample(["db", "web", "night"], random.randrange(3)),
                needs=random.choice(["", "x", "host:a", {"x": 2}]),
                priority=random.randrange(3),
                timeout="2d" if kind == work.hangs else random.choice([None, "1d"]),
                retry=random.choice([None, Retry.exponential("1h", max_retries=3), Retry.linear("5h", jitter=0.5)]),
                overlap=overlap,
                missed=rule,
            )
        return self.live(s, clock)

    def schedule(self, number, now=START):
        """Draw a schedule of some days."""
        days, hour = self.random.randrange(5, 30), self.random.randrange(24)
        return self.random.choice([
            Every(f"{days}d", anchor=years.minute(number)),
            Every(f"{days}d", jitter="5h"),
            After(f"{days}d"),
            Cron(f"{number % 60} {hour} */{days} * *", tz="Europe/Berlin"),
            Calendar("1 month", origin=years.minute(hour * 60 + number), tz="America/New_York"),
            At(now + timedelta(days=days * 10, minutes=number)),
            Every(f"{days}d", anchor=years.minute(number)).except_(Window(Cron("0 0 1 * *"), "3d")),
        ])  # fmt: skip

    async def live(self, s, clock):
        """Do something to one of the jobs, again and again."""
        random = self.random
        for number in range(self.verbs):
            await clock.sleep(random.randrange(1, 2 * 360 * years.DAY // self.verbs))
            job, now = random.choice(s.jobs()), clock.now()
            soon = now + timedelta(days=random.randrange(1, 20))
            verbs = [
                job.pause, job.resume, job.run_now, job.remove, s.resume,
                lambda until=soon, job=job: job.pause(until=until),
                lambda at=soon, job=job: job.set_next_start(at),
                lambda job=job, n=number, now=now: job.update(
                    schedule=self.schedule(n, now), overlap=Overlap.QUEUE, missed=Missed.LATEST
                ),
                lambda until=soon: s.pause(random.choice(["db", "web", None]), until=until),
                lambda: s.resume(random.choice(["db", "web", None])),
                lambda n=number, now=now: s.add(years.nothing, self.schedule(n, now), id=f"late-{n}", tags=["web"]),
            ]  # fmt: skip
            random.choice(verbs)()


class Diary:
    """The text of a year: what a scheduler tells, and what is noted of its jobs."""

    def __init__(self):
        self.lines = []
        self.clock = None

    def play(self, year, days=365, **options):
        """Let a simulated scheduler live through it, and write its counts at the end."""

        def build(s, clock):
            self.clock = clock
            s.listen(self.hear)
            return year(s, clock, self.note)

        done = simulate(build, f"{days}d", **options)
        for id, counts in done.jobs.items():
            self.write(id, "Counts", {name: getattr(counts, name) for name in COUNTS})
        self.write("-", "Counts", {"runs": done.statistics.runs, "missed": done.statistics.missed})

    def hear(self, event):
        """Write down an event."""
        names = [name for name in type(event).__annotations__ if name in FIELDS[type(event)]]
        values = {name: getattr(event, name) for name in names}
        self.write(getattr(event, "job_id", "-"), type(event).__name__, values)

    def note(self, job):
        """Write down how a job stands."""
        starts = [text_of("at", start) for start in job.next_starts(2)]
        self.write(job.id, "Job", {"state": job.state, "next": job.next_start, "starts": starts, "error": job.error})

    def write(self, id, what, values):
        """Write a line: when, of whom, what. Of times only what is another one than that; nothing that is usual."""
        now = text_of("at", self.clock.wall())
        told = {name: text_of(name, value) for name, value in values.items() if not is_usual(name, value)}
        parts = [f"{name}={text}" for name, text in told.items() if text != now and text != told.get(SAME_AS.get(name))]
        self.lines.append(" ".join((now, f"[{id}]", what, *parts)))


def is_usual(name, value):
    """Tell whether this need not be written."""
    return value is None or value == () or value == USUAL.get(name, 0)


def text_of(name, value):
    """Return a value as it is written: instants in UTC, both kinds; lengths to the microsecond."""
    if name in INSTANTS and isinstance(value, (int, float)):
        value = datetime.fromtimestamp(round(value * 1e6) / 1e6, UTC)
    if isinstance(value, datetime):
        text = value.strftime("%m-%d %H:%M:%S.%f").removesuffix(".000000").removesuffix(":00")
        return text if value.year == 2026 else f"{value.year}-{text}"
    if isinstance(value, float):
        return f"{value:.6f}".rstrip("0").rstrip(".")
    text = re.sub(r"memory-\d+", "memory", str(getattr(value, "value", value)))
    return OUR_MODULES.sub("", text)


def stored_year(diary, backend):
    """Play three lives on one store: the first ends in order, the second by a crash, both with runs at work."""
    store = MemoryStore()
    options = {"backend": backend, "poll": "5d", "retention": Retention(per_job=40, age=None), "crash_floor": "2h"}
    options |= {"limits": {"part": 2}}
    diary.play(years.stored, 120, store=store, seed=1, **options)

    def dies(s, clock, note):
        async def until_it_dies():
            await years.restarted(s, clock, note)
            await years.until_day(clock, 230)
            store.another().open(0, lambda: None)  # from now on nothing of this life is kept
            await clock.sleep(2 * years.DAY)
            s.stop(grace=0)

        return until_it_dies()

    diary.play(dies, 110, store=store, seed=2, start=years.day(130), steps=[("61d", -5 * years.DAY)], **options)

    def ends(s, clock, note):
        async def until_the_end():
            await years.after_crash(s, clock, note)
            for record in reversed(await s.history(limit=150)):
                values = {"due": record.due} | {name: getattr(record, name) for name in RECORD}
                values["outcome"] = record.outcome or "running"
                diary.write(record.job_id, "Record", values)

        return until_the_end()

    diary.play(ends, 132, store=store, seed=3, start=years.day(233), **options)


def drawn_year(diary, backend):
    """Play a year whose jobs and events are drawn by lot."""
    options = {"limit": 12, "limits": {"x": 4, "host:*": 2}, "kill_after": "1m", "steps": STEPS_BY_LOT}
    diary.play(Drawn(jobs=60, verbs=150, seed=12), backend=backend, seed=12, **options)


@cache
def text_of_year(name, backend):
    """Return the whole text of a year."""
    diary = Diary()
    if name == "stored":
        stored_year(diary, backend)
    elif name == "drawn":
        drawn_year(diary, backend)
    else:
        year, options = YEARS[name]
        diary.play(year, backend=backend, seed=len(name), **options)
    return "\n".join(diary.lines) + "\n"


def parts_of(text):
    """Return the lines of each month and of each job."""
    parts = defaultdict(list)
    for line in text.splitlines():
        parts[f"month {line[:2]}"].append(line)
        parts[job_of(line)].append(line)
    return parts


def digest_of(name, lines):
    """Return a line with how many lines of text a part has, and their digest."""
    return f"{name}: {len(lines)} lines, {sha256(chr(10).join(lines).encode()).hexdigest()[:24]}"


def job_of(line):
    """Return of which job a line is, in brackets."""
    return line[line.index("[") : line.index("]") + 1]


def by_job(text):
    """Return the text with what happens at one instant in the order of the jobs' ids.

    What `stop` cancels ends in an order that trio draws by lot, runs of one job included.
    """
    instants = groupby(text.splitlines(), lambda line: line[: line.index("[")])
    return "".join(f"{line}\n" for _, lines in instants for line in sorted(lines, key=_place))


def _place(line):
    return job_of(line), line if line.endswith("error=cancelled: stopped") else ""


def kept_text(name, backend):
    """Return what the file of a year holds: digests, then what the busiest job does first.

    The first digest is of the lines as they came, where that order is certain.
    """
    text = text_of_year(name, backend)
    parts = parts_of(by_job(text))
    busiest = max((part for part in parts if part.startswith("[")), key=lambda part: (len(parts[part]), part))
    whole = [digest_of("as it came", text.splitlines())] if is_in_order(name, backend) else []
    digests = [digest_of(part, parts[part]) for part in sorted(parts)]
    return "\n".join([*whole, *digests, "", *parts[busiest][:READABLE]]) + "\n"


def is_in_order(name, backend):
    """Tell whether all lines of a year come in the same order each time: neither on trio nor in the drawn year."""
    return backend == "asyncio" and name != "drawn"


def path_of(name):
    """Return where the text of a year is kept."""
    return HERE / "seeded_year" / f"{name}.txt"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("name", [*YEARS, "stored", "drawn"])
@pytest.mark.usefixtures("quiet")
def test_a_seeded_year_is_what_it_was(name, backend):
    """Every event, count and record of it, in that order; see `by_job` for trio."""
    has_been = path_of(name).read_text(encoding="utf-8").splitlines()
    left_out = is_in_order(name, "asyncio") and not is_in_order(name, backend)
    is_now = kept_text(name, backend).splitlines()
    assert is_now == has_been[left_out:], f"compare {Path(__file__).name} {name} before and after"


def main(arguments):
    """Write the files anew, or print the whole of one year if it is named."""
    logging.disable()
    if arguments:
        sys.stdout.write(text_of_year(arguments[0], "asyncio"))
        return
    for name in [*YEARS, "stored", "drawn"]:
        path_of(name).parent.mkdir(exist_ok=True)
        path_of(name).write_text(kept_text(name, "asyncio"), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
