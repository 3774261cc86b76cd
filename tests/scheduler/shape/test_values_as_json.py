"""Values as JSON: each has one documented shape, and its schema says what is really written."""

import json
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
import pytest
from attrs import fields
from hypothesis import given, strategies as st

import scheduler as package
from kit import PATIENCE
from scheduler import (
    DurationStatistics,
    Event,
    InvalidJob,
    Job,
    JobInfo,
    JobSpec,
    JobStatistics,
    LatenessStatistics,
    Pause,
    Record,
    Retry,
    RunEnded,
    RunInfo,
    Scheduler,
    SchedulerStatistics,
    from_json,
    json_schema_of,
    to_json,
)
from scheduler._shape import spec as spec_module, spec_json as spec_json_module
from scheduler._shape.spec import as_lists
from scheduler._shape.spec_json import told
from spec_material import scheduler, specs
from timerqueue.testing import ManualClock

KINDS = [*typing.get_args(Event), Record, RunInfo, Pause, JobInfo, JobStatistics, SchedulerStatistics]
SIMPLE = {
    float: st.floats(0, 1e9, allow_nan=False),
    datetime: st.datetimes(timezones=st.just(UTC)),
    object: st.none() | st.integers() | st.builds(object) | st.lists(st.integers() | st.builds(object), max_size=2),
    JobSpec: specs(),
    LatenessStatistics: st.just(LatenessStatistics((0, 3, 1))),
    DurationStatistics: st.just(DurationStatistics((0, 3, 1))),
}


def values_of(hint):
    """Make values of a type hint, as the code makes them: finite, and in UTC."""
    if hint in SIMPLE:
        return SIMPLE[hint]
    parts = typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return st.one_of([values_of(part) for part in parts])
    if typing.get_origin(hint) is tuple:
        return (
            st.lists(values_of(parts[0]), max_size=2).map(tuple)
            if parts[1:] == (...,)
            else st.tuples(*map(values_of, parts))
        )
    if typing.get_origin(hint) is Mapping:
        return st.dictionaries(values_of(parts[0]), values_of(parts[1]), max_size=2)
    if hasattr(hint, "__attrs_attrs__"):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{each.name: values_of(hints[each.name]) for each in fields(hint)})
    return st.from_type(hint)


TYPES = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}


def is_of_type(value, name):
    """Tell whether JSON calls the value by that type."""
    if name in {"number", "integer"}:
        return isinstance(value, int if name == "integer" else (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def faults(value, schema, place="$"):
    """Yield where a value breaks its schema."""
    if "anyOf" in schema and all(list(faults(value, each, place)) for each in schema["anyOf"]):
        yield f"{place}: {value!r} is none of {schema['anyOf']}"
    if "type" in schema and not is_of_type(value, schema["type"]):
        yield f"{place}: {value!r} is no {schema['type']}"
        return
    if value not in schema.get("enum", [schema.get("const", value)]):
        yield f"{place}: {value!r} is none of the values"
    if schema.get("type") == "array":
        for index, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{place}[{index}]")
    if schema.get("type") == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        yield from (f"{place}: lacks {name}" for name in set(schema.get("required", ())) - set(value))
        for name, item in value.items():
            if name not in known and others is False:
                yield f"{place}: has {name}"
            else:
                yield from faults(item, known.get(name, others), f"{place}.{name}")


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_the_schema_says_what_is_written(kind, data):
    """Whatever the values, and the text is strict JSON."""
    written = to_json(data.draw(values_of(kind)))
    json.dumps(written, allow_nan=False)
    assert list(faults(written, json_schema_of(kind))) == []


@given(specs())
def test_the_schema_of_a_spec_admits_what_is_written(spec):
    """What `to_json` writes, `from_json` reads."""
    assert list(faults(to_json(spec), json_schema_of(JobSpec))) == []


@pytest.mark.parametrize(
    "given",
    [
        {"schedule": 30, "needs": "http", "timeout": "5s", "agents": "all"},
        {"needs": ["http"], "retry": {"growth": "linear", "base": "1m"}, "max_running": None, "agents": 3},
    ],
)
def test_the_schema_of_a_spec_admits_what_people_write(given):
    """Durations as text, and needs in short."""
    data = {"id": "a", "task": "probe", "schedule": "@every 10s"} | given
    assert list(faults(data, json_schema_of(JobSpec))) == []
    from_json(JobSpec, data)


def test_the_schema_of_a_spec_names_every_key():
    """And says which must be there."""
    schema = json_schema_of(JobSpec)
    assert set(schema["properties"]) == set(to_json(JobSpec("a", "b", 10)))
    assert schema["required"] == ["id", "task", "schedule"]
    assert list(faults({"id": "a", "task": "b", "schedule": 1, "tiemout": 3}, schema)) == ["$: has tiemout"]


def test_a_job_is_told_with_its_spec_and_how_it_stands():
    """The schema of Job is that of its information."""
    s = Scheduler(clock=ManualClock())
    job = s.add(print, "@every 10s", id="web", start=datetime(2026, 1, 2, tzinfo=UTC), tags=["eu"])
    found = to_json(job)
    assert found["spec"] == to_json(job.spec)
    assert (found["state"], found["func"], found["next_start"]) == ("scheduled", "print", "2026-01-02T00:00:00Z")
    assert (found["node"], found["is_ours"], found["pauses"], found["error"]) == (None, True, [], None)
    assert list(faults(found, json_schema_of(Job))) == []
    assert from_json(JobSpec, found["spec"] | {"task": "print"}).owner is None


class Sender:
    """Something to call, whose repr shows a secret."""

    def __repr__(self):
        return "Sender('s3cret')"

    async def __call__(self, *args):
        """Send nothing."""

    async def send(self, *args):
        """Send nothing."""


@pytest.mark.parametrize(
    ("func", "name"),
    [
        (partial(print, "s3cret"), "print"),
        (partial(partial(Sender().send, "s3cret")), "Sender.send"),
        (partial(Sender(), "s3cret"), "Sender"),
        (Sender(), "Sender"),
        (Sender().send, "Sender.send"),
    ],
)
def test_a_function_is_told_by_name_and_never_by_its_repr(func, name):
    """The repr of a partial has its arguments, which may be a password."""
    found = to_json(Scheduler().add(func, "@every 1h", id="web"))
    assert found["func"] == name
    assert "s3cret" not in str(found)


async def test_a_paused_job_tells_all_its_pauses():
    """Its own, that of its tag and that of everything."""
    async with Scheduler(clock=ManualClock()) as s:
        job = s.add(print, "@every 10s", id="web", tags=["eu", "us"])
        job.pause("new disks")
        s.pause("eu", reason="move")
        s.pause("asia")
        s.pause()
        assert [each["scope"] for each in to_json(job)["pauses"]] == ["job:web", "tag:eu", "*"]
        assert job.pauses[0].reason == "new disks"


def test_a_job_without_text_is_told_without_spec():
    """A list of jobs must not fail for one of them."""
    from schedule import Schedule  # noqa: PLC0415 - a class of the user's own

    class Never(Schedule):
        def next(self, after):
            return after + timedelta(hours=1)

    job = Scheduler().add(print, Never(), id="web")
    found = to_json(job)
    assert found["spec"] is None
    assert "class of your own" in found["spec_error"]


@pytest.mark.parametrize("wrong", [object(), float("nan"), {1: 2}, b"x", "\ud800"])
def test_a_job_with_arguments_that_json_cannot_hold_is_told_without_spec(wrong):
    """A spec with text instead would be another job's: put back, it would change the job."""
    job = Scheduler().add(print, "@every 1h", id="web", args=["ok", wrong])
    found = to_json(job)
    assert found["spec"] is None
    assert found["spec_error"].startswith("args[1]")
    assert list(faults(found, json_schema_of(Job))) == []
    with pytest.raises(InvalidJob, match=r"args\[1\]"):
        to_json(job.spec)
    assert to_json(Scheduler().add(print, "@every 1h", kwargs={"end": wrong}))["spec"] is None


def test_a_dict_that_another_thread_changes_is_no_error(monkeypatch):
    """A list of jobs must not fail for one of them: its spec or result is text this time."""
    state = {"a": 1, "b": 2}
    job = Scheduler().add(print, "@every 1h", id="web", args=[state])

    def changing(value):
        state[f"{len(state)}"] = 1
        return as_lists(value)

    with monkeypatch.context() as patch:
        patch.setattr(spec_json_module, "as_lists", changing)
        patch.setattr(spec_module, "as_lists", changing)
        found = to_json(job)
        with pytest.raises(InvalidJob, match="args or kwargs cannot be read: dictionary changed size"):
            _ = job.spec
        assert told(state).startswith("{'")
    assert found["spec"] is None
    assert "dictionary changed size" in found["spec_error"]
    assert to_json(job)["spec"]["args"] == [state]


def test_a_list_that_holds_itself_is_told_without_spec():
    """It has no end."""
    endless = []
    endless.append(endless)
    assert "cannot be read" in to_json(Scheduler().add(print, "@every 1h", args=[endless]))["spec_error"]


def test_counts_by_outcome_have_the_words_of_outcomes():
    """As the metrics and the agent have them."""
    assert to_json({package.Outcome.TIMED_OUT: 1, "x": 2}) == {"timed_out": 1, "x": 2}
    assert to_json(LatenessStatistics((0, 2)))["quantiles"]["0.5"] > 0


def test_instants_durations_and_members_have_one_form():
    """Instants in UTC, durations in seconds, members in small letters."""
    east = datetime.fromisoformat("2026-01-02T03:04:05.5+02:00")
    found = to_json([east, timedelta(minutes=1), package.Outcome.TIMED_OUT, 1, 1.5, float("inf"), True, None, "x"])
    assert found == ["2026-01-02T01:04:05.500000Z", 60.0, "timed_out", 1, 1.5, None, True, None, "x"]
    assert to_json(Retry.constant("5s")) == {"growth": "constant", "base": 5.0}


@pytest.mark.parametrize("value", [object(), b"bytes", Scheduler, {1, 2}])
def test_other_values_are_refused(value):
    """A program learns at once that something is not ours."""
    with pytest.raises(TypeError, match="to_json knows jobs"):
        to_json(value)


@pytest.mark.parametrize("kind", [int, "Job", Scheduler, None])
def test_other_classes_have_no_schema(kind):
    """The error names one that has."""
    with pytest.raises(TypeError, match="such as Record"):
        json_schema_of(kind)


def test_only_specs_are_read():
    """How a job stands cannot be told to a scheduler."""
    with pytest.raises(TypeError, match="reads a JobSpec"):
        from_json(Record, {})


async def test_results_that_json_cannot_hold_become_text():
    """A listener may send each event on."""
    told = []
    s = scheduler()
    async with s:
        s.listen(lambda event: told.append(to_json(event)), RunEnded)
        s.add(object, "@every 1h", id="a", start="now", inline=True)
        with anyio.fail_after(PATIENCE):
            while not told:
                await anyio.lowlevel.checkpoint()
    assert told[0]["event"] == "RunEnded"
    assert told[0]["results"][0].startswith("<object object")
