"""A job's definition as a value: it reads back from a job and from JSON, and equal specs mean equal jobs."""

import json
import re

import pytest
from attrs import evolve
from hypothesis import example, given, strategies as st

from schedule import After, Cron, Every, ScheduleError
from scheduler import (
    InvalidJob,
    JobSpec,
    Retry,
    Scheduler,
    from_json,
    to_json,
)
from spec_material import JSON, probe, scheduler, specs


@given(specs())
def test_a_spec_reads_back_from_json(spec):
    """Whatever its options, and through a real text."""
    text = json.dumps(to_json(spec), allow_nan=False)
    assert from_json(JobSpec, json.loads(text)) == spec
    assert to_json(from_json(JobSpec, json.loads(text))) == json.loads(text)


def test_a_job_tells_the_spec_of_which_it_was_made():
    """With every option, in another form than that of the spec."""
    options = {
        "args": ((1, 2), "x"), "kwargs": {"y": (3,)}, "needs": "http", "priority": 2, "timeout": "1m",
        "retry": Retry.linear("5s", max_retries=3), "overlap": "queue", "missed": "all", "grace": "2s", "catch_up": 5,
        "delivery": "at_least_once", "place": "rack", "tags": ["b", "a"], "name": "Web", "owner": "cmdb",
    }  # fmt: skip
    job = scheduler().add(probe, "@every 60s", id="web", **options)
    assert job.spec == JobSpec("web", "probe", "@every 1m", **options)
    assert job.owner == "cmdb"
    assert job.spec.args == ([1, 2], "x")


def test_many_jobs_have_one_owner_and_it_may_change():
    """It is an option like the others, kept with the job."""
    first, second = scheduler().add_many("probe", [("a", 10), ("b", 20)], owner="file")
    assert {first.owner, second.owner, first.spec.owner} == {"file"}
    first.update(owner="cmdb")
    second.update(owner=None)
    assert (first.owner, second.owner) == ("cmdb", None)
    with pytest.raises(InvalidJob, match="owner must be a text of 1 to 200 printable characters"):
        first.update(owner="")


@pytest.mark.parametrize("schedule", [Every("10s"), Every("1d", jitter="1m"), After("5s"), Cron("H H * * *"), 90])
def test_the_schedule_of_a_job_is_told_without_what_its_id_decides(schedule):
    """Else a job would differ from the spec of which it was made."""
    job = scheduler().add(probe, schedule, id="web")
    assert job.spec == JobSpec("web", "probe", schedule)


def test_equal_values_in_other_words_are_equal_specs():
    """So that a diff shows real differences only."""
    spec = JobSpec("web", "probe", "@every 60s", needs={"http": 1}, timeout=60, tags="a")
    assert spec == JobSpec("web", "probe", "@every 1m", needs=["http"], timeout="1m", tags={"a"})
    assert hash(spec) == hash(evolve(spec, timeout=61))


@pytest.mark.parametrize("change", [{"args": (True,)}, {"schedule": "@every 2m"}, {"owner": "b"}, {"inline": True}])
def test_each_difference_makes_another_spec(change):
    """True is not 1, either."""
    spec = JobSpec("web", "probe", "@every 1m", args=(1,))
    assert evolve(spec, **change) != spec


def test_a_function_without_a_name_has_no_task():
    """Such a job can be shown, and only code can add it."""
    job = Scheduler().add(lambda it: None, "@every 10s", id="web", args=("it",))
    assert job.spec.task is None
    assert to_json(job)["spec"]["args"] == ["it"]


GOOD = {"id": "web", "task": "probe", "schedule": "@every 10s"}


@pytest.mark.parametrize(
    ("change", "path", "text"),
    [
        ({"id": None}, "id", "a job must have one"),
        ({"id": ""}, "id", "something in it"),
        ({"schedule": "soon"}, "schedule", "schedule: cannot read the schedule 'soon'"),
        ({"schedule": True}, "schedule", "a number of seconds"),
        ({"retry": {"growth": "linear", "base": "x"}}, "retry.base", "retry.base: cannot read the duration 'x'"),
        ({"retry": {"growth": "up", "base": 1}}, "retry.growth", "must be one of 'constant'"),
        ({"retry": {"base": 1}}, "retry", "must also say 'growth'"),
        ({"timeout": "3q"}, "timeout", "there is no unit 'q'"),
        ({"timeout": 0}, "timeout", "longer than nothing"),
        ({"needs": 3}, "needs", "array of texts"),
        ({"needs": {"http": 0}}, "needs", "whole units from 1"),
        ({"overlap": "sometimes"}, "overlap", "must be one of 'skip'"),
        ({"overlap": "replace", "missed": "all"}, "overlap", "choose one of them"),
        ({"args": "x"}, "args", "array of arguments"),
        ({"args": [[float("nan")]]}, "args[0][0]", "finite number"),
        ({"kwargs": []}, "kwargs", "object from names"),
        ({"tags": "web"}, "tags", "array of texts"),
        ({"inline": 1}, "inline", "True or False"),
        ({"owner": ""}, "owner", "printable characters"),
        ({"apart": "zone"}, "apart", "for a number of agents"),
        ({"where": "!"}, "where", "labels"),
        ({"tiemout": 3}, "tiemout", "did you mean 'timeout'?"),
    ],
)
def test_a_wrong_key_is_named_by_its_path(change, path, text):
    """The words are those of `add`."""
    with pytest.raises(InvalidJob, match=re.escape(text)) as caught:
        from_json(JobSpec, GOOD | change)
    assert caught.value.path == path
    assert str(caught.value).startswith((path, "there is no key"))


HOSTILE = [
    "x" * 100_000, 10**5_000, -1, 1e308, True, "\0", "\ud800", "a\u202eb", [[]] * 1_000, {"": None}, {"a": {"b": []}},
    "99999999999w", float("nan"), float("inf"),
]  # fmt: skip


def tried(data):
    """Return the spec that was read, or why it was refused."""
    try:
        return from_json(JobSpec, data), None
    except InvalidJob as exc:
        return None, exc


@pytest.mark.parametrize("key", sorted(to_json(JobSpec("a", "b", 1))))
@given(st.sampled_from(HOSTILE) | JSON)
@example([[]])
@example(10**5_000)
@example("\ud800")
def test_whatever_comes_is_a_job_or_is_refused_in_short(key, value):
    """Nothing else is raised, and the error does not repeat a long value."""
    spec, refusal = tried(GOOD | {key: value})
    assert refusal is None or (refusal.path is not None and len(str(refusal)) < 2_000)
    if spec is not None:
        json.dumps(to_json(spec), allow_nan=False, ensure_ascii=False).encode()


def test_a_deep_value_is_refused():
    """Python's own stack is not its bound."""
    value = 1
    for _ in range(900):
        value = [value]
    for key in GOOD | {"args": 1, "kwargs": 1, "needs": 1, "retry": 1, "tags": 1, "timeout": 1, "owner": 1}:
        with pytest.raises(InvalidJob):
            from_json(JobSpec, GOOD | {key: value if key != "kwargs" else {"a": value}})


@pytest.mark.parametrize("data", [None, [], "web", {1: 2}])
def test_what_is_no_object_is_no_job(data):
    """The error shows one that is right."""
    with pytest.raises(InvalidJob, match='"schedule": "@every 10s"'):
        from_json(JobSpec, data)


def test_a_spec_made_in_code_is_refused_as_add_refuses_it():
    """Its schedule too, with the same error."""
    with pytest.raises(ScheduleError, match="cannot read the schedule"):
        JobSpec("web", "probe", "soon")
    with pytest.raises(InvalidJob, match="not the text of a part"):
        JobSpec("web", "probe", "@every 10s", place="x", where="any | 1 of 3 apart by zone")
