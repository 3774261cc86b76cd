"""What users hold: the documented names of a job, and nothing of what its scheduler needs."""

import inspect

import scheduler
from schedule import Every
from scheduler import Job, Scheduler

VERBS = {"next_starts", "pause", "remove", "resume", "run_now", "set_next_start", "statistics", "update"}
VERBS |= {"disable", "enable", "info", "skip", "supersede"}
OPTIONS = {"delivery", "missed", "needs", "overlap", "priority", "retry", "timeout"}
FACTS = {"agent", "args", "error", "func", "id", "is_ours", "kwargs", "name", "next_start", "schedule", "state", "tags"}
FACTS |= {"owner", "pauses", "spec"}


async def nothing():
    """Take no time."""


def public(names):
    """Leave out what begins with an underscore."""
    return {name for name in names if not name.startswith("_")}


def test_only_documented_names_show_beside_a_jobs_verbs():
    """There were 47."""
    job = Scheduler().add(nothing, Every("10s"))
    assert public(dir(job)) == public(dir(Job)) == VERBS | FACTS | OPTIONS
    for name in VERBS | FACTS | OPTIONS:
        assert hasattr(job, name)
        assert inspect.getdoc(getattr(Job, name))


def test_a_job_is_a_job():
    """By the name that users import."""
    s = Scheduler()
    job = s.add(nothing, Every("10s"), id="a")
    assert isinstance(job, scheduler.Job)
    assert isinstance(s.get("a"), Job)
    assert s.jobs() == [job]
    assert not hasattr(job, "__dict__")


def test_the_verbs_of_a_job_are_those_that_are_documented():
    """Signatures too: what a type checker knows is what is called."""
    kind = type(Scheduler().add(nothing, Every("10s")))
    for name in VERBS:
        assert inspect.signature(getattr(kind, name)) == inspect.signature(getattr(Job, name))
