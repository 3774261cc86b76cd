"""The latest events as values, numbered, for readers that go on where they stopped."""

import pytest

from kit import nothing
from scheduler import InvalidJob, JobAdded, JobChanged, RunEnded, RunStarted, Scheduler, to_json
from scheduler._views.recent import KEPT


@pytest.fixture
async def s():
    """A scheduler that runs, with one job."""
    async with Scheduler() as s:
        s.add(nothing, "@every 1h", id="a")
        yield s


async def test_nothing_is_kept_before_the_first_question(s):
    """It costs nothing until then."""
    assert not s._listeners.anybody
    page = s.events()
    assert (page.events, page.last, page.lagged) == ((), 0, False)
    assert s._listeners.anybody


async def test_events_come_in_order_with_numbers(s):
    """A reader goes on after the last."""
    s.events()
    job = s.add(nothing, "@every 1h", id="b")
    await job.run_now()
    page = s.events()
    assert [each.number for each in page.events] == [1, 2, 3]
    assert [type(each.event) for each in page.events] == [JobAdded, RunStarted, RunEnded]
    assert page.last == 3
    assert s.events(page.last).events == ()
    job.pause()
    (again,) = s.events(page.last).events
    assert (again.number, type(again.event)) == (4, JobChanged)


async def test_a_page_has_a_limit(s):
    """The next one goes on where it ends."""
    s.events()
    for tag in "abc":
        s.pause(tag)
    first = s.events(limit=2)
    assert (len(first.events), first.last) == (2, 2)
    assert [each.event.scope for each in s.events(first.last).events] == ["tag:c"]


async def test_a_reader_that_is_too_late_is_told(s):
    """It gets what is still there."""
    s.events()
    for number in range(KEPT + 10):
        s.pause(f"{number}")
    late = s.events(5, limit=3)
    assert (late.lagged, [each.number for each in late.events]) == (True, [11, 12, 13])
    assert not s.events(10).lagged
    assert not s.events(late.last).lagged
    assert len(s.events(limit=100_000).events) == KEPT


@pytest.mark.parametrize("after", [-1, 1, 10**30])
async def test_a_position_that_was_never_given_has_lagged(after, s):
    """It is of another scheduler, perhaps of one before a restart."""
    assert s.events(after).lagged


@pytest.mark.parametrize("limit", [0, -1, "all", 1.5])
async def test_a_limit_is_a_count(limit, s):
    """As everywhere."""
    with pytest.raises(InvalidJob):
        s.events(limit=limit)


async def test_results_and_tracebacks_are_left_out(s):
    """They may be large: records have them."""

    async def returns():
        return "x" * 1_000

    async def fails():
        raise ValueError("it broke")

    s.events()
    for func in (returns, fails):
        await s.add(func, "@every 1h", id=func.__name__).run_now()
    ended = [each.event for each in s.events().events if isinstance(each.event, RunEnded)]
    assert [(each.results, each.traceback) for each in ended] == [((), None), ((), None)]
    assert "it broke" in ended[1].error


async def test_a_page_is_told_as_json(s):
    """Each event says its kind."""
    s.events()
    s.pause("x", reason="y")
    assert to_json(s.events()) == {
        "events": [{"number": 1, "event": {"event": "ScopePaused", "scope": "tag:x", "reason": "y", "until": None}}],
        "last": 1,
        "lagged": False,
    }


async def test_the_lateness_of_a_window_is_a_difference(s):
    """Two statistics give what happened between them."""
    before = s.statistics().lateness
    await s.get("a").run_now()
    after = s.statistics().lateness["default"]
    window = after if "default" not in before else after.since(before["default"])
    assert window.total == 1
    assert after.since(after).total == 0
    assert window.cumulative((3600.0,)) == (1,)
