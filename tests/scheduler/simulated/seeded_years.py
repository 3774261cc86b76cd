"""The years that test_seeded_year.py plays: what is in them, one function for each.

A year is called with the scheduler, its clock and `note`, which writes a line into the text of that year. It adds its
jobs and returns a coroutine that lives beside them for as long as it likes, or None.

No two runs are to be cancelled at one instant: in which order those end, trio draws by lot. So jobs that overlap start
minutes apart.
"""

from datetime import UTC, datetime, timedelta

import anyio

from schedule import After, At, Calendar, Cron, Every, Missed, Window
from scheduler import JobState, Overlap, Retry, Subtask, current_run
from timerqueue.testing import START

HOUR, DAY = 3_600, 86_400

CLOCK_STEPS = [("40d", 3_600), ("80d", -3_600), ("120d7h", 9 * DAY), ("200d", -2 * DAY), ("300d", 0.4)]


async def nothing():
    """Take no time."""


def day(days):
    """Return the instant so many days after the start of the year."""
    return START + timedelta(days=days)


def minute(number):
    """Return the instant so many minutes after the start of the year."""
    return START + timedelta(minutes=number)


def day_of_run():
    """Return on which day of the year the tick of this run was due."""
    return current_run().due.timetuple().tm_yday


async def until_day(clock, days):
    """Sleep until so many days after the start of the year, by the wall clock."""
    await clock.sleep((day(days) - clock.now()).total_seconds())


class Work:
    """What jobs do, by the day on which they were due."""

    def __init__(self, clock):
        self.clock = clock

    async def takes(self, *hours):
        """Take so many hours, another number each day."""
        await self.clock.sleep(hours[day_of_run() % len(hours)] * HOUR)

    async def fails(self, *failures):
        """Fail so many times in a row, another number each day, then succeed."""
        await self.clock.sleep(90)
        if current_run().attempt <= failures[day_of_run() % len(failures)]:
            raise ConnectionError(f"no route, {current_run().attempt}")
        return current_run().attempt

    async def exits(self):
        """Raise what no task should, in spring."""
        await self.clock.sleep(2)
        if day_of_run() in range(80, 172):
            raise SystemExit(3)

    async def ignores_its_end(self):
        """Go on for four hours, whatever is asked."""
        with anyio.CancelScope(shield=True):
            await self.clock.sleep(4 * HOUR)

    async def hangs(self):
        """Take longer than anybody waits."""
        await self.clock.sleep(10_000 * DAY)

    async def returns_subtasks(self):
        """Have three parts done; each of them has two more done."""
        return [Subtask(self.part, number, needs="part") for number in range(3)]

    async def part(self, number):
        """Do a part: the last of them fails in summer, and is too slow in autumn."""
        await self.clock.sleep(10 * number)
        month = current_run().due.month
        if number == 2 and month in (6, 7):
            raise ValueError(f"too hot for part {number}")
        return [Subtask(self.piece, number, month, timeout="10m"), Subtask(self.piece, number, 0)]

    async def piece(self, number, month):
        """Do a piece of a part."""
        await self.clock.sleep(HOUR if number == 2 and month in (9, 10) else 60)
        return number * 100 + month


def overlap(s, clock, note):
    """Each overlap rule: a run takes 2 hours, 3 days, 12 days, 20 days, by turns; one of them is started by hand."""
    work = Work(clock)
    for number, rule in enumerate(Overlap):
        more = {"overlap": rule} | ({"max_running": 2} if rule is Overlap.ALLOW else {})
        s.add(work.takes, Every("5d", anchor=minute(number)), id=rule.value, args=(2, 288, 72, 480), **more)
        s.add(work.takes, Cron(f"{number} 4 * * 1"), id=f"cron {rule.value}", args=(300, 5), **more)

    async def beside():
        for days in range(33, 340, 61):
            await until_day(clock, days)
            for job in s.jobs():
                job.run_now()
                await clock.sleep(60)

    return beside()


def missed(s, clock, note):
    """Each missed rule and each kind of schedule, with a clock that is set and a limit that is full for weeks."""
    work = Work(clock)
    s.add(work.takes, Every("73d", anchor=START), id="hog", needs={"room": 2}, priority=5, args=(18 * 24, 30))
    for rule in Missed:
        more = {Missed.SKIP: {"grace": "6h"}, Missed.ALL: {"catch_up": 3}}.get(rule, {})
        for schedule in (
            Every("4d", anchor=START),
            Cron("30 6 */9 * *", tz="Europe/Berlin"),
            Calendar("1 month", origin=START),
        ):
            id = f"{type(schedule).__name__} {rule.value}"
            s.add(work.takes, schedule, id=id, needs="room", missed=rule, args=(1,), **more)


def retries(s, clock, note):
    """Each way to wait after a failure, jitter included; some jobs give up, and are taken up again."""
    work = Work(clock)
    kinds = {
        "constant": Retry.constant("6h", max_retries=3),
        "linear": Retry.linear("2h", cap="9h", jitter=0.25),
        "exponential": Retry.exponential("1h", cap="2d", max_retries=6),
        "timescaledb": Retry.timescaledb("3h"),
        "past next start": Retry.constant("9d", past_next_start=True),
        "never": Retry.constant("1h", max_retries=0),
    }
    for name, retry in kinds.items():
        s.add(work.fails, Every("12d", anchor=START), id=name, args=(0, 2, 0, 5, 1), retry=retry)
        if name not in {"linear", "timescaledb"}:
            s.add(work.fails, After("23d"), id=f"after {name}", args=(0, 3, 1), retry=retry)
    s.add(work.exits, "@weekly", id="exits", retry=Retry.linear("1d", max_retries=2))

    async def beside():
        for days in range(70, 365, 70):
            await until_day(clock, days)
            for job in s.jobs():
                note(job)
                if job.state is JobState.DISABLED:
                    job.resume()

    return beside()


def pauses(s, clock, note):
    """Pauses of a job, of tags and of everything, with and without an end, one within another."""
    work = Work(clock)
    schedules = {"every": Every("6d", anchor=START), "cron": Cron("0 3 */5 * *"), "after": After("7d")}
    for name, schedule in schedules.items():
        for tags in ((), ("db",), ("db", "web")):
            s.add(work.takes, schedule, id=" ".join((name, *tags)), tags=tags, args=(5, 40), overlap=Overlap.QUEUE)
    one, other = s.get("every"), s.get("every db")
    verbs = {
        20: lambda: s.pause("db", reason="migration", until=day(50)),
        31: lambda: one.pause("by hand"),
        33: lambda: s.pause(reason="moving house", until=day(44)),
        35: other.run_now,
        38: lambda: s.pause("web"),
        40: lambda: one.set_next_start(day(60)),
        58: one.resume,
        62: lambda: s.resume("web"),
        90: lambda: other.pause(until=day(100)),
        95: lambda: other.pause("longer", until=day(130)),
        104: lambda: s.pause("db", until=day(110)),
        107: lambda: s.resume("db"),
        150: s.pause,
        160: lambda: s.add(nothing, "@every 3d", id="late", tags=["web"]) and None,
        170: lambda: other.update(schedule=Every("9d", anchor=START)),
        175: s.resume,
        200: lambda: s.get("after").pause("rests"),
        230: lambda: s.get("after").set_next_start(day(240)),
        250: lambda: s.get("after").resume(),
        260: lambda: s.get("late").remove(),
        300: lambda: s.pause("nobody has it"),
    }
    return take_turns(s, clock, note, verbs)


def verbs(s, clock, note):
    """What handles can do, to jobs that rest, run or wait for room."""
    work = Work(clock)
    one = s.add(work.takes, Every("10d", anchor=START), id="one", args=(30,), needs="room", overlap=Overlap.QUEUE)
    two = s.add(work.takes, Every("12d", anchor=START), id="two", args=(150,), needs="room")
    after = s.add(work.takes, After("9d"), id="after", args=(20,))
    shot = s.add(work.takes, At(day(77)), id="shot", args=(1,))
    shy = s.add(work.takes, At(day(30.2)), id="shy", args=(1,), needs="room")
    verbs = {
        12.5: one.run_now,
        20.1: one.run_now,
        24.5: lambda: two.update(kwargs={}, args=(10,), priority=3),
        30.5: shy.remove,
        33: lambda: one.set_next_start(day(34)),
        37: lambda: one.set_next_start(day(20)),
        41: after.run_now,
        45: lambda: after.set_next_start(day(63)),
        50: lambda: shot.set_next_start(day(66)),
        70: lambda: one.update(schedule="0 5 1,15 * *", timeout="1d"),
        90: lambda: two.update(schedule=Every("3d"), func=work.fails, args=(0, 1), retry=Retry.constant("5h")),
        120: lambda: two.update(schedule=After("8d"), overlap=Overlap.REPLACE, retry=None),
        121: lambda: s.add(nothing, "@daily", id="one", on_conflict="keep") and None,
        150: lambda: s.add(work.takes, "@every 20d", id="one", args=(500,), on_conflict="update") and None,
        190: lambda: s.add(work.takes, Every("10d"), id="one", args=(50,), on_conflict="replace", start="now") and None,
        192: lambda: s.get("one").remove(),
        210: lambda: (
            s.add(work.takes, "@every 5d", id="one", args=(100,), start=day(222), overlap=Overlap.ALLOW) and None
        ),
        230: lambda: s.add(work.hangs, At(day(231)), id="hung") and None,
        240: lambda: s.get("hung").remove(),
        250: after.remove,
        280: lambda: s.resize(2),
        320: lambda: s.resize(limits={"room": 3}),
    }
    return take_turns(s, clock, note, verbs)


async def take_turns(s, clock, note, verbs):
    """Carry out each verb on its day, and note how all jobs stand after it."""
    for days, verb in verbs.items():
        await until_day(clock, days)
        verb()
        await clock.sleep(1)
        for job in s.jobs():
            note(job)


def schedules(s, clock, note):
    """Each kind of schedule, in zones whose clocks are set twice a year, with a wall clock that is set five times."""
    holidays = Window(Cron("0 0 1 */2 *"), "12d")
    kinds = {
        "every": Every("9d"),
        "every with jitter": Every("13d", jitter="10h"),
        "every from": Every("10d", anchor=day(3.25)).between(day(30), day(330)),
        "every but": Every("7d", anchor=START).except_(holidays),
        "after": After("12d"),
        "at": At(day(101)),
        "months": Calendar("1 month", origin=datetime(2026, 1, 31, 12, tzinfo=UTC), tz="Europe/Berlin"),
        "weeks": Calendar("2 weeks", origin=START, tz="America/New_York"),
        "cron": Cron("30 2 */7 * *", tz="Europe/Berlin"),
        "last of month": Cron("15 1 L * *", tz="America/New_York"),
        "somewhen": Cron("H H H * *"),
        "either": Cron("0 12 1 * *") | Every("25d", anchor=START),
    }
    for name, schedule in kinds.items():
        s.add(nothing, schedule, id=name, missed=Missed.ALL if name == "cron" else Missed.LATEST)

    async def beside():
        for days in range(30, 365, 30):
            await until_day(clock, days)
            for job in s.jobs():
                note(job)

    return beside()


def subtasks(s, clock, note):
    """Subtasks of subtasks: some fail, some are too slow, some find no room, some are too many."""
    work = Work(clock)
    s.add(work.returns_subtasks, Every("6d", anchor=START), id="parts", timeout="2h")
    s.add(work.returns_subtasks, Every("9d", anchor=START), id="parts again", retry=Retry.constant("7h", max_retries=2))
    s.add(work.returns_subtasks, Cron("5 4 1,16 * *"), id="parts by turns", overlap=Overlap.QUEUE, needs="part")

    async def too_many():
        return [Subtask(work.piece, number, 1) for number in range(21)]

    s.add(too_many, "@monthly", id="too many")
    s.add(work.returns_subtasks, After("20d"), id="cut off", timeout=75)


def limits(s, clock, note):
    """Limits that fill up: who goes first, what waits, what is missed, what is cut off."""
    work = Work(clock)
    for number in range(8):
        s.add(
            work.takes,
            Every("20d", anchor=minute(number)),
            id=f"crowd {number}",
            args=(40 + 10 * number, 8, 300),
            needs=[{"x": 2}, "x", "host:a", "host:b", ("x", "host:a"), (), "x", {"host:b": 2}][number],
            priority=number % 3,
            timeout="9d" if number % 2 else None,
            overlap=list(Overlap)[number % 4],
            retry=Retry.exponential("2h", max_retries=2) if number == 5 else None,
        )
    s.add(work.hangs, Every("50d", anchor=START), id="hangs", timeout="3h", needs="host:a")
    s.add(work.ignores_its_end, Every("40d", anchor=START), id="deaf", timeout="1h", needs="x")
    s.add(work.exits, Every("30d", anchor=START), id="exits", needs="x", retry=Retry.constant("1d", max_retries=1))
    s.add(lambda: 7, "37 11 */20 * *", id="in a thread")
    s.add(lambda: 8, "39 11 */20 * *", id="inline", inline=True)

    async def beside():
        await until_day(clock, 150)
        s.resize(3)
        await until_day(clock, 220)
        s.resize(9, {"x": 1, "host:*": 3})
        await until_day(clock, 300)
        s.get("crowd 2").remove()
        s.get("crowd 5").pause()

    return beside()


def stored(s, clock, note):
    """Begin a year whose jobs are kept in a store: half of them at least once, some at work whenever a process ends."""
    know_tasks(s, clock, ["takes", "fails", "returns_subtasks", "gone"])
    for number, rule in enumerate(Overlap):
        for delivery in ("at_most_once", "at_least_once"):
            more = {"overlap": rule, "delivery": delivery, "tags": [rule.value]}
            id, hours = f"{rule.value} {delivery}", [30, 300, 60]
            s.add("takes", Every("8d", anchor=minute(number + len(delivery))), id=id, args=hours, **more)
            s.add("takes", After("6d"), id=f"after {id}", args=hours, missed=Missed.SKIP, **more)
    s.add("fails", "0 7 */5 * *", id="fails", args=[0, 2, 1], retry=Retry.linear("12h", jitter=0.5, max_retries=3))
    s.add("fails", "@every 11d", id="fails for long", args=[9], retry=Retry.exponential("1d", cap="30d"))
    s.add("returns_subtasks", "@weekly", id="parts", delivery="at_least_once", missed=Missed.ALL)
    s.add("gone", "@every 9d", id="task is gone", delivery="at_least_once")
    s.add(nothing, "@monthly", id="not stored", durable=False)
    s.add("takes", At(day(125)), id="due while nobody is there", args=[1])
    s.add("takes", At(day(200)), id="shot", args=[1_000], delivery="at_least_once")

    async def beside():
        await until_day(clock, 60)
        s.pause("queue", reason="for long", until=day(150))
        s.get("fails").pause("rests")
        await until_day(clock, 119)
        s.get("replace at_least_once").run_now()

    return beside()


def restarted(s, clock, note):
    """Go on with it after ten days without a process: one task is not known any more, some schedules are others."""
    know_tasks(s, clock, ["takes", "fails", "returns_subtasks"])

    async def beside():
        for job in s.jobs():
            note(job)
        s.get("skip at_least_once").update(schedule="0 9 */6 * *")
        s.get("fails").resume()
        await until_day(clock, 140)
        s.add("takes", "@every 7d", id="allow at_most_once", args=[400], on_conflict="update")
        await until_day(clock, 160)
        s.get("after skip at_most_once").remove()
        s.get("after allow at_least_once").set_next_start(day(170))
        await until_day(clock, 229)
        s.get("after allow at_least_once").run_now()

    return beside()


def after_crash(s, clock, note):
    """Go on with it after a crash."""
    know_tasks(s, clock, ["takes", "fails", "returns_subtasks", "gone"])

    async def beside():
        for days in (233.5, 260, 300, 364):
            await until_day(clock, days)
            for job in s.jobs():
                note(job)

    return beside()


def know_tasks(s, clock, names):
    """Register these tasks."""
    work = Work(clock)
    tasks = {"takes": work.takes, "fails": work.fails, "returns_subtasks": work.returns_subtasks, "gone": nothing}
    for name in names:
        s.register(name, tasks[name])
