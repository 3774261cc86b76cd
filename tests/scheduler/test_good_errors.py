"""What is said of what cannot be: what was wrong, with its value, and what to write instead."""

import math
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from schedule import At, Cron, Every, ScheduleError, Window, parse
from scheduler import InvalidJob, Missed, Overlap, Retry, Scheduler
from scheduler.stores.memory import MemoryStore
from timerqueue.testing import START

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def nothing():
    """Take no time."""


def add(**options):
    """Add a job with these options."""
    return lambda: Scheduler().add(nothing, "@every 1s", **options)


SCHEDULES = {
    "except_ of a schedule": (
        lambda: Every("1h").except_(Every("1d")),
        "except_ takes windows, and '@every 1d' does not say how long they are: write Window(..., \"2h\") of it",
    ),
    "except_ of a number": (
        lambda: Every("1h").except_(5),
        'except_ takes windows, such as Window(Cron("0 2 * * sun"), "2h"), not 5',
    ),
    "a window of text": (
        lambda: Window("@daily", "1h"),
        "the starts of a Window must be a Schedule, such as Cron(\"0 2 * * sun\"), not '@daily'",
    ),
    "windows that follow each other": (
        lambda: Every("1h").except_(Window(Cron("@hourly"), "1h")),
        "'@every 1h except (@hourly for 1h)' never comes: it has no slot outside its windows. Shorten a window",
    ),
    "a window over all there is": (
        lambda: At(NOON).except_(Window(At(NOON), "1h")),
        "never comes: it has no slot outside its windows. Shorten a window, or leave one out",
    ),
    "bounds that hold nothing": (
        lambda: At(NOON).between(NOON + timedelta(days=1)),
        "'@at 2026-03-01T12:00:00+00:00 from 2026-03-02T12:00:00+00:00' never comes",
    ),
    "every monday": (lambda: parse("every monday"), "'every monday': did you mean '0 9 * * mon'?"),
    "@every monday": (lambda: parse("@every Monday"), "'@every Monday': did you mean '0 9 * * mon'?"),
    "every day": (lambda: parse("every day"), "'every day': did you mean '@daily'?"),
    "weekdays": (lambda: parse("weekdays"), "did you mean '0 9 * * mon-fri'?"),
    "every fortnight": (lambda: parse("every fortnight"), 'write "@every 10s"'),
    "weekday 8": (lambda: parse("* * * * 8"), "day-of-week '8' is out of range: use 0 to 6, or 7 for sun too"),
    "weekday in full": (lambda: parse("0 9 * * monday"), "cannot read 'monday' as day-of-week: did you mean 'mon'?"),
    "@dayly": (lambda: parse("@dayly"), 'did you mean "@daily"?'),
    "@dayly as cron": (lambda: Cron("@dayly"), "cannot read the cron expression '@dayly': did you mean '@daily'?"),
    "L-3": (lambda: parse("0 0 L-3 * *"), "cannot read 'L-3' as day-of-month: write L for the last day of the month"),
    "mon#6": (lambda: parse("0 0 * * mon#6"), "cannot read 'mon#6' as day-of-week: write fri#3 for the third Friday"),
}

JOBS = {
    "needs of a number": (add(needs=5), "needs: must be the name of a limit, several, or a mapping"),
    "needs of a number of units": (add(needs={"http": 0}), "needs: must map names of limits to whole units from 1"),
    "overlap by a wrong name": (add(overlap="drop"), "overlap must be an Overlap, not 'drop': write Overlap.SKIP"),
    "missed by a wrong name": (add(missed="every"), "missed must be a Missed, not 'every': write Missed.LATEST"),
    "a number as retry": (add(retry=3), "retry must be a Retry, not 3: write Retry.exponential"),
    "retries without end": (
        lambda: Retry.constant(1, max_retries=math.inf),
        "max_retries of a Retry must be a whole number from 0, or None to try again for ever, not inf",
    ),
    "retries in text": (lambda: Retry.constant(1, max_retries="3"), "None to try again for ever, not '3'"),
    "retries of yes": (lambda: Retry.constant(1, max_retries=True), "None to try again for ever, not True"),
    "jitter in text": (lambda: Retry.constant(1, jitter="a"), "must be a share of the delay, from 0 to 1, not 'a'"),
    "jitter above 1": (lambda: Retry.constant(1, jitter=2), "must be a share of the delay, from 0 to 1, not 2"),
    "a yes in text": (lambda: Retry.constant(1, past_next_start="no"), "must be True or False, not 'no'"),
    "growth in text": (lambda: Retry(growth="linear", base=1), "must be a Growth, such as Growth.LINEAR, not 'linear'"),
    "no limit at all": (lambda: Scheduler(limit=0), "limit must be a whole number from 1, or math.inf for no limit"),
    "a limit in text": (lambda: Scheduler(limit="5"), "limit must be a whole number from 1, or math.inf for no limit"),
    "a named limit": (lambda: Scheduler(limits={"http": 0}), "limit 'http' must be a whole number from 1"),
    "limits of a number": (lambda: Scheduler(limits=5), 'limits must be a mapping from names to numbers, such as {"h'),
    "resized to nothing": (lambda: Scheduler().resize(0), "limit must be a whole number from 1"),
    "a poll without rest": (lambda: Scheduler(store=MemoryStore(), poll=0), "poll must be at least 0.001 s, not 0"),
    "a name that is none": (add(name=5), "name must be a text, not 5"),
    "a reason that is none": (lambda: Scheduler().pause(reason=5), "reason must be a text, not 5"),
    "a tag that is none": (lambda: Scheduler().pause(5), "tag must be a text, not 5"),
    "no tag to resume": (lambda: Scheduler().resume(5), "tag must be a text, not 5"),
    "a partial as a task": (
        lambda: Scheduler().task(partial(nothing)),
        'has no name that a task can have: give it one, as in @scheduler.task("check")',
    ),
    "a lambda as a task": (lambda: Scheduler().task(lambda: None), 'give it one, as in @scheduler.task("check")'),
    "a number as a task": (lambda: Scheduler().task(5)(nothing), "the name of a task must be 1 to 128 of the char"),
}


@pytest.mark.parametrize(("make", "says"), SCHEDULES.values(), ids=SCHEDULES)
def test_a_schedule_that_cannot_be_says_what_to_write(make, says):
    """Nobody else's words, no repr, and no suggestion that would be refused as well."""
    with pytest.raises(ScheduleError) as caught:
        make()
    assert says in str(caught.value)
    assert "1970" not in str(caught.value)
    assert "datetime." not in str(caught.value)


@pytest.mark.parametrize(("make", "says"), JOBS.values(), ids=JOBS)
def test_a_job_that_cannot_be_says_what_to_write(make, says):
    """The argument, its value, and what it should be."""
    with pytest.raises(InvalidJob) as caught:
        make()
    assert says in str(caught.value)
    assert "attr" not in str(caught.value)
    assert len(caught.value.args) == 1


SPOKEN = (
    "every minute|every hour|every day|each day|every night|mondays|Every Sunday|every week|every month|every year|"
    "every weekday|@every weekdays|daily|@evry 10s|every10s|10 minutes"
).split("|")


@pytest.mark.parametrize("text", SPOKEN)
def test_what_is_suggested_is_a_schedule(text):
    """Whoever writes what the error says is not refused again."""
    with pytest.raises(ScheduleError) as caught:
        parse(text)
    _, asked, meant = str(caught.value).partition("did you mean ")
    if asked:
        assert parse(meant.rstrip("?").strip("'\"")).next(START) is not None
    else:
        assert "write" in str(caught.value)


@pytest.mark.parametrize("store", [None, MemoryStore], ids=["memory", "store"])
async def test_a_task_without_parentheses_has_the_name_of_its_function(clock, store):
    """It had been accepted, and taken for the name: every run failed."""
    async with Scheduler(clock=clock, store=store and store()) as s:
        ran = []

        @s.task
        async def check(what):
            ran.append(what)

        @s.task()
        async def other():
            ran.append("other")

        @s.task(inline=True)
        def third():
            ran.append("third")

        assert callable(check)
        s.add("check", "@every 1h", id="a", args=["a"], start="now")
        s.add(check, "@every 1h", id="b", args=["b"], start="now")
        s.add("other", "@every 1h", id="c", start="now")
        s.add("third", "@every 1h", id="d", start="now")
        await clock.travel(1)
        assert sorted(ran) == ["a", "b", "other", "third"]


def test_enums_are_still_what_they_were(clock):
    """What the errors say to write is taken."""
    s = Scheduler(clock=clock, limit=math.inf, limits={"http": 2.0, "dns": math.inf})
    s.add(nothing, "@every 1s", overlap=Overlap.SKIP, missed=Missed.ALL, needs={"http": 2}, name="a name")
