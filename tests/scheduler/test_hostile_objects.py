"""Whatever a user's object does when it is formatted, copied, compared or iterated ends its own run, and is told."""

import json
from collections import Counter, OrderedDict, UserList, defaultdict, namedtuple
from enum import Enum, IntEnum, StrEnum

import pytest
from hypothesis import given, strategies as st

from scheduler import Outcome, Retry, RunEnded, Scheduler, Subtask
from scheduler._journal.results import result_text
from scheduler._values.telling import LONGEST_ERROR, LONGEST_TRACE, error_text, shown, trace_text
from scheduler.stores.memory import MemoryStore


class Stop(BaseException):
    """What no `except Exception` catches."""


def raising(name, what=KeyError, base=Exception):
    """Make an object of `base` whose method `name` raises."""

    def method(self, *_args, **_kwargs):
        raise what(name)

    return type("Hostile", (base,), {name: method})


def chain(length):
    """Make an error that has so many causes."""
    error = None
    for number in range(length):
        following = ValueError(number)
        following.__cause__ = error
        error = following
    return error


def caused(error, cause):
    error.__cause__ = cause
    return error


def its_own_cause():
    error = KeyError("me")
    return caused(error, error)


def endless():
    found = []
    found.append(found)
    return found


class NoClass(Exception):
    @property
    def __class__(self):
        raise KeyError


class NoNotes(Exception):
    @property
    def __notes__(self):
        raise Stop


class OddNotes(Exception):
    __notes__ = 7


ERRORS = {
    "passes attributes on": lambda: raising("__getattr__")("far away"),
    "refuses all attributes": lambda: raising("__getattribute__", Stop)("far away"),
    "has no text": raising("__str__"),
    "has no text at all": raising("__str__", Stop),
    "has a text that is none": type("Odd", (Exception,), {"__str__": lambda self: 5}),
    "has no repr": lambda: raising("__repr__", Stop)("x"),
    "has arguments without a repr": lambda: ValueError(raising("__repr__", Stop, object)()),
    "has arguments that cannot be compared": lambda: ValueError(raising("__eq__", Stop, object)()),
    "is not hashed": lambda: raising("__hash__", Stop)("x"),
    "has no truth": lambda: raising("__bool__", Stop)("x"),
    "has no length": lambda: raising("__len__", Stop)("x"),
    "is a SyntaxError with odd details": lambda: SyntaxError("bad template", ("page.html", 1, 3, 42)),
    "is a SyntaxError with odd numbers": lambda: SyntaxError("x", ("page.html", "one", object(), "text", None, ())),
    "is a SyntaxError without any": SyntaxError,
    "has notes that raise": lambda: NoNotes("x"),
    "has notes that are none": lambda: OddNotes("x"),
    "has no class": lambda: NoClass("x"),
    "has a cause that cannot be told": lambda: caused(KeyError(), raising("__str__", Stop)()),
    "has a hundred thousand causes": lambda: chain(100_000),
    "is a group of a hundred thousand": lambda: ExceptionGroup("many", [ValueError(n) for n in range(100_000)]),
    "is its own cause": its_own_cause,
    "is a group that hides its members": lambda: type(
        "Hidden", (ExceptionGroup,), {"exceptions": property(lambda self: 1 / 0)}
    )("x", [ValueError()]),
    "is long": lambda: ValueError("x" * 1_000_000),
    "is as a BaseException can be": lambda: Stop("x"),
    "has surrogates": lambda: ValueError("\ud800 and \0"),
}

RESULTS = {
    "has no repr": raising("__repr__", Stop, object),
    "has no class": NoClass,
    "cannot be compared": raising("__eq__", Stop, object),
    "has no truth": raising("__bool__", Stop, object),
    "cannot be iterated": lambda: raising("__iter__", Stop, list)([1]),
    "has no length": lambda: raising("__len__", Stop, list)([1]),
    "has no end": lambda: type("Endless", (list,), {"__iter__": lambda self: iter(int, 1)})([1]),
    "says a length that it has not": lambda: type("Long", (list,), {"__len__": lambda self: 10**18})([1]),
    "has no items": lambda: raising("items", Stop, dict)(a=1),
    "has no values": lambda: raising("values", Stop, dict)(a=1),
    "has a key that cannot be read": lambda: {raising("__str__", Stop, object)(): 1},
    "has a text that is not one": lambda: raising("__str__", Stop, str)("x"),
    "is a number that is not one": lambda: raising("__int__", Stop, int)(3),
    "holds what has no repr, beside a subtask": lambda: [Subtask(print), raising("__repr__", Stop, object)()],
    "holds itself": endless,
    "is deep": lambda: json.loads("[" * 900 + "]" * 900),
    "is a huge number": lambda: 10**100_000,
    "is a long text": lambda: "x" * 10_000_000,
    "is a long list": lambda: [0] * 1_000_000,
    "is a long tuple": lambda: (None,) * 1_000_000,
    "is not a number": lambda: float("nan"),
}


@pytest.fixture
def lives(clock, events):
    """Make schedulers over one store, one after another, whose task `work` does what it is told."""
    store = MemoryStore()

    def life(work):
        s = Scheduler(store=store, clock=clock)
        s.register("work", work, inline=True)
        s.register("fine", lambda: "fine", inline=True)
        s.listen(events)
        return s

    return life


async def play(lives, clock, work, *, runs):
    """Run it under a scheduler, and see that each run has its end and its event, also for the next scheduler."""
    async with lives(work) as s:
        events = s_events(s)
        job = s.add("work", "@every 1h", id="odd", start="now", retry=Retry.constant("1s", max_retries=1, jitter=0))
        fine = s.add("fine", "@every 1s", id="fine")
        await clock.travel(3)
        await s.flush()
        ends = [event for event in events if event.job_id == "odd"]
        assert (len(ends), job.statistics().runs, job.statistics().crashes) == (runs, runs, 0)
        assert fine.statistics().runs == fine.statistics().successes >= 2
        assert s.statistics().store.trouble is None
        (record,) = await s.history("odd")
    async with lives(work) as s:
        await s.flush()
        assert s.get("odd").statistics().crashes == 0
        assert await s.history("odd") == [record]
    return ends, record


def s_events(s):
    ends = []
    s.listen(lambda event: ends.append(event) if isinstance(event, RunEnded) else None)
    return ends


@pytest.mark.parametrize("name", ERRORS)
async def test_a_run_whose_error_cannot_be_told_has_its_end_its_event_and_its_retry(lives, clock, name):
    """8 of 25 such errors left a run without any of them, found as a crash by the next process."""

    def work():
        error = ERRORS[name]()
        raise error

    ends, record = await play(lives, clock, work, runs=2)
    assert [end.outcome for end in ends] == [Outcome.FAILED] * 2
    assert ends[0].retry_at is not None
    assert record.outcome is Outcome.FAILED
    for text, longest in ((record.error, LONGEST_ERROR), (record.traceback, LONGEST_TRACE)):
        assert text
        assert len(text) <= longest


@pytest.mark.parametrize("name", RESULTS)
async def test_a_run_whose_result_cannot_be_told_has_its_end_and_its_event(lives, clock, name):
    """It has succeeded without a stored result, or failed where it might hold subtasks and cannot be looked at."""
    runs = []

    def work():
        runs.append(1)
        return RESULTS[name]()

    async with lives(work) as s:
        s.add("work", "@every 1h", id="odd", start="now")
        await clock.travel(3)
        await s.flush()
        (record,) = await s.history("odd")
        assert record.outcome in {Outcome.SUCCEEDED, Outcome.FAILED}
        assert s.get("odd").statistics().crashes == 0
    async with lives(work) as s:
        assert s.get("odd").statistics().crashes == 0
    assert len(runs) == 1


@pytest.mark.parametrize(("method", "answer"), [("__bool__", False), ("__len__", 0)])
async def test_an_error_that_counts_as_false_is_logged_with_its_traceback(lives, clock, caplog, method, answer):
    """`logging` leaves out the traceback of a bare exception that is false."""

    def work():
        raise type("Empty", (Exception,), {method: lambda self: answer})

    await play(lives, clock, work, runs=2)
    told = [
        record.exc_info[0].__name__ for record in caplog.records if "failed: " in record.message and record.exc_info
    ]
    assert told == ["Empty"] * 2


async def test_a_long_error_is_cut_and_says_so(lives, clock):
    """How long it was stands in it; so it does in the traceback, whose beginning and end are kept."""

    def work():
        raise ValueError("x" * 5_000_000)

    _, record = await play(lives, clock, work, runs=2)
    assert record.error.endswith("... (cut: 5000012 characters)")
    assert len(record.error) == LONGEST_ERROR
    assert record.traceback.startswith("Traceback (most recent call last)")
    assert "(cut: 50" in record.traceback
    assert record.traceback.endswith("xxx\n")


async def test_a_text_is_asked_for_once_for_all_who_are_told(clock):
    """The statistics, the log, the record and the listeners."""
    asked = []

    class Big(Exception):
        def __str__(self):
            asked.append(1)
            return "big"

    s = Scheduler(store=MemoryStore(), clock=clock)
    s.listen(lambda event: None)

    def work():
        raise Big

    s.register("work", work, inline=True)
    async with s:
        s.add("work", "@every 1h", id="a", start="now")
        await clock.travel(1)
    assert len(asked) == 3  # for the error, for the traceback, and by the handler of the log


async def test_a_task_that_changes_what_it_was_given_changes_nothing_else(lives, clock):
    """The next run and the next process are given what was added; it was what the last run had left."""
    given, calls = [{"url": "http://x", "tags": [1]}], []

    def work(options, *, more):
        calls.append((dict(options, tags=list(options["tags"])), list(more)))
        options["seen"] = object()
        options["tags"].clear()
        more.append(2)

    async with lives(work) as s:
        job = s.add("work", "@every 1h", id="a", args=given, kwargs={"more": [1]}, start="now")
        given[0]["url"] = "changed by the caller"
        await clock.travel(1)
        job.pause("to have its row written")
        job.resume()
        job.run_now()
        await clock.travel(1)
        new = [1]
        job.update(kwargs={"more": new})
        new.append("by the caller")
        job.run_now()
        await clock.travel(1)
    async with lives(work) as s:
        s.get("a").run_now()
        await clock.travel(1)
    assert calls == [({"url": "http://x", "tags": [1]}, [1])] * 4


def test_arguments_that_cannot_be_compared_are_taken_for_others():
    """As an array's are: adding the job once more raised what the comparison did."""
    s = Scheduler()
    odd = raising("__eq__", Stop, object)
    job = s.add(print, "@every 1h", id="a", args=(odd(),))
    again = odd()
    assert s.add(print, "@every 1h", id="a", args=(again,), on_conflict="update") is job
    assert job.args[0] is again


async def test_a_listener_that_is_told_of_odd_results_and_raises_them_hurts_nobody(lives, clock):
    """Nor does one that raises what cannot be formatted."""
    told = []

    def listener(event):
        told.append(event)
        error = ERRORS["refuses all attributes"]()
        raise error

    async with lives(RESULTS["cannot be compared"]) as s:
        s.listen(listener)
        job = s.add("work", "@every 1s", id="odd", start="now")
        await clock.travel(5)
        assert job.statistics().successes >= 5
    assert len(told) > 10


Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - the plainest there is


class Mixed(str, Enum):  # noqa: UP042 - the older way
    A = "a"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=40)
    | st.sampled_from([IntEnum("N", "A").A, StrEnum("S", "A").A, Mixed.A]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner).map(lambda pair: Pair(*pair))
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none() | st.booleans(), inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4).map(lambda d: defaultdict(int, d))
        | st.dictionaries(st.text(max_size=5), inner, max_size=4).map(OrderedDict)
    ),
    max_leaves=40,
)


@given(values)
def test_results_are_written_as_json_writes_them(value):
    """All that fits; what does not is left out."""
    expected = json.dumps(value, allow_nan=False, separators=(",", ":"))
    assert result_text([1, value]) == (expected if len(expected) <= 2_048 else None)


@given(st.dictionaries(st.text(max_size=40), values, min_size=4, max_size=8))
def test_reports_are_written_as_json_writes_them(value):
    """Dicts of some entries have a way of their own, if all in them is Python's own."""
    expected = json.dumps(value, allow_nan=False, separators=(",", ":"))
    assert result_text([value]) == (expected if len(expected) <= 2_048 else None)


ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "last",
    [
        float("nan"),
        "x" * 2_048,
        ["é" * 400],
        [0] * 10**6,
        {"n" * 2_048: 1},
        ENDLESS,
        {1: 2, "x": b""},
        [[b""], 0, 0, 0],
    ],
    ids=type,
)
def test_of_a_report_that_cannot_be_written_nothing_is(last):
    """Its other entries are of no use alone."""
    for each in (last, 10**5_000):
        assert result_text([{"a": 1, "b": [2.5, None], "c": {"d": True}, "last": each}]) is None


@pytest.mark.parametrize("value", [UserList([1]), {(1, 2): 3}, {1, 2}, b"x", float("inf"), [object()], Counter])
def test_what_json_cannot_hold_is_left_out(value):
    """As documented."""
    assert result_text([value]) is None


def test_of_a_long_result_no_more_is_looked_at_than_can_be_stored():
    """Its cost is that of 2,048 characters, whatever its length."""
    looked_at = []

    class Watched(str):
        __slots__ = ()

        def __len__(self):
            looked_at.append(self)
            return 0

    seen = []

    class Seen(dict):
        def __getattribute__(self, name):
            seen.append(name)
            return super().__getattribute__(name)

    assert result_text([[Seen(a=Watched("x")) for _ in range(100_000)]]) is None
    assert looked_at == []
    assert len(seen) < 2_048


def test_shown_is_short_whatever_it_is():
    """And says what it is where it does not say it itself."""
    assert shown([0] * 10**6) == "[0, 0, 0, 0, 0, 0, ...]"
    assert shown(raising("__repr__", Stop, object)()) == "<Hostile, whose repr raises Stop>"
    assert len(shown("x" * 10**6)) < 300


def test_errors_are_told_as_python_tells_them():
    """With notes, causes, and members of groups."""
    error = ExceptionGroup("two", [ValueError("first"), KeyError("second")])
    error.add_note("a note")
    error.__cause__ = OSError("cause")
    assert error_text(error) == "ExceptionGroup: two (2 sub-exceptions)\na note"
    assert all(word in trace_text(error) for word in ("first", "second", "a note", "cause", "direct cause"))
    assert "Hostile: far away" in error_text(ERRORS["passes attributes on"]())
    assert "bad template" in error_text(ERRORS["is a SyntaxError with odd details"]())
    assert "200 other errors" in trace_text(ERRORS["is a group of a hundred thousand"]())
