"""Words of other schedulers, values in other forms, and what a newcomer prints: each is understood, or answered."""

import re
from datetime import timedelta
from importlib.metadata import version

import pytest

import scheduler
from kit import nothing
from schedule import Every, Missed
from scheduler import InvalidJob, LifecycleError, Overlap, Retry, Scheduler, SchedulerState, Subtask
from scheduler._words import OPTIONS, VERBS
from scheduler.stores.sqlite import SQLiteStore
from scheduler.testing import simulate
from timerqueue.testing import ManualClock


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_an_option_of_apscheduler_is_answered_with_ours(name):
    """A plain TypeError said nothing but its name."""
    with pytest.raises(
        TypeError, match=re.escape(f"add() got an unexpected keyword argument {name!r}: {OPTIONS[name]}")
    ):
        Scheduler().add(nothing, "@every 10s", **{name: 1})


def test_any_other_option_is_named():
    """As Python does it; of several the one for which there is a hint."""
    with pytest.raises(TypeError, match=r"add\(\) got an unexpected keyword argument 'colour'$"):
        Scheduler().add(nothing, "@every 10s", colour="red")
    with pytest.raises(TypeError, match="max_instances"):
        Scheduler().add(nothing, "@every 10s", colour="red", max_instances=3)


@pytest.mark.parametrize("name", sorted(VERBS))
def test_a_verb_of_apscheduler_is_answered_with_ours(name):
    """It is no attribute of a Scheduler."""
    assert not hasattr(Scheduler(), name)
    with pytest.raises(AttributeError, match=re.escape(f"a Scheduler has no attribute {name!r}: write {VERBS[name]}")):
        getattr(Scheduler(), name)


def test_a_plain_with_says_how_a_scheduler_runs():
    """Python only said what is missing."""
    with pytest.raises(TypeError, match="async with"), Scheduler():
        pass


@pytest.mark.parametrize("given", [10, 10.0, timedelta(seconds=10), "@every 10s", Every("10s")])
def test_an_interval_is_taken_in_each_form(given):
    """As durations are everywhere else."""
    s = Scheduler()
    assert s.add(nothing, given).schedule == Every("10s")
    assert s.add_many(nothing, [("many", given)])[0].schedule == Every("10s")
    job = s.add(nothing, "@every 1h")
    job.update(schedule=given)
    assert job.schedule == Every("10s")


@pytest.mark.parametrize("given", [True, float("nan"), 0, -1, timedelta()])
def test_a_number_that_is_no_interval_is_refused(given):
    """It is told what it must be."""
    with pytest.raises(ValueError, match=r"schedule must|interval|longer|duration"):
        Scheduler().add(nothing, given)


@pytest.mark.parametrize("given", ["queue", "QUEUE", "Queue", Overlap.QUEUE])
def test_an_overlap_rule_is_taken_as_text_too(given):
    """As `delivery` and `on_conflict` are."""
    s = Scheduler()
    job = s.add(nothing, "@every 10s", overlap=given, missed="skip")
    assert (job.overlap, job.missed) == (Overlap.QUEUE, Missed.SKIP)
    job.update(overlap="allow")
    assert (job.overlap, job.policy.max_running) == (Overlap.ALLOW, 10)


async def test_a_manual_clock_takes_a_timedelta_and_says_what_it_takes():
    """A text was a raw TypeError."""
    clock = ManualClock()
    await clock.travel(timedelta(minutes=1))
    clock.advance(timedelta(minutes=1))
    assert clock.monotonic() == 1_120
    clock.step(timedelta(hours=-1))
    for verb in (clock.advance, clock.step):
        with pytest.raises(TypeError, match="must be a number or a timedelta, not '1h'"):
            verb("1h")
    with pytest.raises(TypeError, match="must be a number or a timedelta, not '1h'"):
        await clock.travel("1h")


def two(a, b, *, c=0):
    """Take two arguments."""


class Callee:
    """Things that are called."""

    def method(self, a, b):
        """Take two arguments."""

    def __call__(self, a, b):
        """Take two arguments."""


@pytest.mark.parametrize("func", [two, Callee().method, Callee(), lambda a, b: None])
@pytest.mark.parametrize("wrong", [{}, {"args": (1,)}, {"args": (1, 2, 3)}, {"args": (1, 2), "kwargs": {"d": 1}}])
def test_arguments_that_the_function_refuses_are_refused_at_once(func, wrong):
    """Each run failed."""
    s = Scheduler()
    with pytest.raises(InvalidJob, match=r"^func .*cannot be called so: .*argument.*look at args and kwargs$"):
        s.add(func, "@every 10s", **wrong)
    right, args = ("a", "@every 1s", (1, 2)), wrong.get("args", ())
    with pytest.raises(InvalidJob, match=r"^jobs\[1\]: func .*cannot be called so"):
        s.add_many(func, [right, ("b", "@every 1s", args, wrong.get("kwargs"))])
    assert s.jobs() == []
    job = s.add(func, "@every 10s", args=(1, 2))
    with pytest.raises(InvalidJob, match="cannot be called so"):
        job.update(args=wrong.get("args", ()), kwargs=wrong.get("kwargs"))
    assert job.args == (1, 2)


def test_the_next_function_is_looked_at_too():
    """What is known of one with so many arguments says nothing of another."""
    s = Scheduler()
    s.add(two, "@every 10s", args=(1, 2))
    for func, args in ((lambda a: None, (1, 2)), (two, (1, 2, 3)), (two, ())):
        with pytest.raises(InvalidJob, match="cannot be called so"):
            s.add(func, "@every 10s", args=args)
    s.add(two, "@every 10s", args=(1, 2), kwargs={"c": 3})
    s.add(print, "@every 10s", args=(1, 2, 3, 4))


async def test_a_stored_job_is_looked_at_too(tmp_path):
    """By the function that its task names."""
    s = Scheduler(store=SQLiteStore(tmp_path / "jobs.db"))
    s.register("two", two)
    with pytest.raises(InvalidJob, match="cannot be called so"):
        s.add("two", "@every 10s", id="job")


def test_more_units_than_a_limit_has_are_an_invalid_job_with_both_numbers():
    """It was a bare ValueError, which no SchedulerError is."""
    s = Scheduler(limits={"http": 3, "host:*": 2})
    for needs, says in (({"http": 5}, "'http' has 3 units and never room for 5"), ({"host:a": 4}, "has 2 units")):
        with pytest.raises(InvalidJob, match=says):
            s.add(nothing, "@every 10s", needs=needs)
        with pytest.raises(InvalidJob, match=says):
            s.add_many(nothing, [("a", "@every 10s")], needs=needs)
        with pytest.raises(InvalidJob, match=says):
            s.add(nothing, "@every 10s").update(needs=needs)


def test_a_job_tells_its_options():
    """`retry` was None though a Retry was set."""
    retry = Retry.constant("10s", max_retries=2)
    s = Scheduler(limits={"http": 3})
    job = s.add(
        nothing, "@every 10s", retry=retry, timeout="5s", needs={"http": 2}, priority=3, delivery="at_least_once"
    )
    assert (job.retry, job.timeout, job.needs, job.priority) == (retry, timedelta(seconds=5), {"http": 2}, 3)
    assert job.delivery.value == "at_least_once"
    plain = s.add(nothing, "@every 10s")
    assert (plain.retry, plain.timeout, plain.needs) == (None, None, {})
    with pytest.raises(AttributeError):
        plain.retry = retry


def test_what_is_printed_is_one_short_line():
    """It were 1,500 zeros for each type of job."""

    def build(s, _clock):
        s.add(nothing, "@every 1h", needs="http")
        s.add(nothing, "@every 1h")

    found = simulate(build, "1d", limits={"http": 3})
    s = Scheduler()
    s.add(nothing, "@every 1h")
    texts = [repr(each) for each in (found, found.statistics, found.statistics.lateness["http"], s, s.statistics())]
    assert [text for text in texts if len(text) > 150 or "\n" in text] == []
    assert texts[2] == "LatenessStatistics(total=24, p50=0.000000, p99=0.000000)"
    assert texts[3] == "<Scheduler pre-running, 1 jobs>"
    assert "runs=48" in texts[1]


async def test_a_state_has_the_name_that_is_exported():
    """It was a LifecycleState."""
    s = Scheduler()
    assert s.state is SchedulerState.PRE_RUNNING
    assert repr(s.state) == "<SchedulerState.PRE_RUNNING: 'pre-running'>"
    async with s:
        assert s.state is SchedulerState.RUNNING
    assert s.state is SchedulerState.STOPPED


def test_the_package_tells_its_version():
    """That of the distribution; another name is none."""
    assert scheduler.__version__ == version("timerqueue")
    assert not hasattr(scheduler, "BackgroundScheduler")


def test_outcomes_and_reasons_have_words_without_spaces():
    """For JSON and labels."""
    keys = [each.key for each in (*scheduler.Outcome, *scheduler.MissedReason)]
    assert [key for key in keys if not re.fullmatch("[a-z_]+", key)] == []
    assert scheduler.Outcome.TIMED_OUT.key == "timed_out"


async def test_a_scheduler_that_could_not_start_says_why_it_has_stopped(tmp_path):
    """A view of a web server heard only that it has."""
    path = tmp_path / "jobs.db"
    async with Scheduler(store=SQLiteStore(path)):
        s = Scheduler(store=SQLiteStore(path))
        s.register("work", nothing)
        job = s.add("work", "@every 1h", id="job")
        with pytest.raises(scheduler.StoreUnusable):
            await s.run()
        for verb in (lambda: s.add("work", "@every 1h", id="b"), job.run_now):
            with pytest.raises(
                scheduler.AlreadyStopped, match=r"has stopped because of .*StoreUnusable: .* in use"
            ) as caught:
                verb()
            assert isinstance(caught.value.__cause__, scheduler.StoreUnusable)
    with pytest.raises(LifecycleError):
        await s.flush()


def test_a_subtask_is_told_as_it_is_called():
    """Of what is no plain value only the type: its repr may hold a secret."""
    assert Subtask(two, 1, "a", c=object()).text == "two(1, 'a', c=<object>)"
    assert len(Subtask(two, "x" * 10_000, 2).text) <= 230
