"""A store that fails once, at each of its calls in turn: whatever was told to the scheduler, the end is the same."""

from itertools import count

import pytest

from kit import until
from scheduler import Retry, Scheduler, StoreDown, StoreUp
from scheduler.testing import FlakyStore

pytestmark = pytest.mark.slow

NEVER = "0 0 1 1 *"
"""No job of these tests starts by itself."""


class Scenario:
    """Always the same steps, over a store that is new each time."""

    def __init__(self, store, events):
        self.store = store
        self.events = events
        self.scheduler = Scheduler(store=store, blocked_after=None, poll="20ms")
        self.scheduler.register("good", self.good)
        self.scheduler.register("bad", self.bad)
        self.scheduler.listen(events)

    async def good(self):
        return None

    async def bad(self):
        raise ValueError(self)

    async def play(self):
        """Add, run, fail, try again, pause, update, remove and stop."""
        async with self.scheduler as s:
            good = s.add("good", NEVER, id="good")
            bad = s.add("bad", NEVER, id="bad", retry=Retry.constant("1ms", max_retries=1))
            gone = s.add("good", NEVER, id="gone")
            await s.flush()
            for job in (good, bad, gone):
                job.run_now()
            await until(lambda: len(self.events.outcomes()) == 4)
            good.pause("to look at it")
            bad.update(timeout="1m")
            await s.flush()
            gone.remove()
            good.run_now()
            await until(lambda: len(self.events.outcomes()) == 5)
            await s.flush()
            self.commits = self.store.calls["commit"]


def result(place):
    """Return what is left in the store, without instants."""
    rows, ticks = place.content()
    jobs = {id: (row, state.runs, state.successes, state.failures, state.next_us) for id, (row, state) in rows.items()}
    history = {job_id: [(tick.attempt, tick.outcome, tick.count) for tick in found] for job_id, found in ticks.items()}
    return jobs, history


@pytest.fixture
def new_place(place, tmp_path, numbers=count(1)):  # noqa: B008 - one count for all
    """Make places where no store has been."""

    def new_place():
        spec, number = dict(place.spec), next(numbers)
        if spec["kind"] == "sqlite":
            spec |= {"path": str(tmp_path / f"{number}.sqlite"), "durability": "fast"}
        else:
            spec["schema"] += f"_{number}"
        return type(place)(spec)

    return new_place


@pytest.mark.parametrize(
    ("anyio_backend", "place", "before_or_after"),
    [
        ("asyncio", "sqlite", "before"),
        ("trio", "sqlite", "after"),
        ("asyncio", "postgres", "after"),
    ],
    indirect=["place"],
)
async def test_a_commit_that_fails_is_repeated_and_nothing_else_changes(new_place, events, before_or_after):
    """Each of them, whether it had been carried out or not."""

    async def play(fail_on):
        place = new_place()
        events.clear()
        store = FlakyStore(place.store(), fail_on=fail_on, before_or_after=before_or_after)
        scenario = Scenario(store, events)
        await scenario.play()
        return scenario.commits, result(place)

    _, expected = await play(fail_on=())
    assert not events.of(StoreDown)
    for number in count(1):
        commits, found = await play(fail_on=number)
        if commits < number:
            break
        assert found == expected, f"commit {number}"
        assert [type(event) for event in events.of(StoreDown, StoreUp)] == [StoreDown, StoreUp], f"commit {number}"
    assert number >= 5


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize("verb", ["changes", "prune"])
async def test_another_verb_that_fails_does_no_harm(new_place, events, verb):
    """It is asked again when the time has come."""
    faultless, flaky = new_place(), new_place()
    await Scenario(FlakyStore(faultless.store()), events).play()
    events.clear()
    store = FlakyStore(flaky.store(), fail_on=range(1, 3), verbs=[verb])
    await Scenario(store, events).play()
    assert result(flaky) == result(faultless)
