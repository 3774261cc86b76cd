"""Verbs of jobs, asked of each agent of those that share a store: the same comes of them as with one agent alone.

Each verb is tried in three places: asked of the agent that has the job, of another one, and of another one while a
third comes, so that parts of the jobs are handed on. For that, agents are started for each test; else they are the same
for all tests of a place, each of which has jobs of its own: to start them costs ten times what a verb does.
"""

import itertools
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from kit import PATIENCE, until
from schedule import Every
from scheduler import JobState, MissedReason, Outcome, Retry, Scheduler, current_run
from scheduler.stores.postgres import PostgresStore

SLOW = [pytest.param(place, marks=pytest.mark.slow) for place in ("owner", "moving")]
PLACES = ["alone", "other", *SLOW]
NUMBERS = itertools.count(1)
JOBS = 24
FAR = Every("400d")
"""So far that no job has a start of its own while a test goes on: where that lies in the interval comes from its id."""


class Fleet:
    """Agents in this process, and what their tasks have noted. `turn`: how many tests have had them."""

    def __init__(self, dsn, schema, stack):
        self._where = dsn, schema
        self._stack = stack
        self.agents = {}
        self.ran = []
        self.turn = 0

    async def start(self, name, *, shared=True):
        dsn, schema = self._where
        s = Scheduler(store=PostgresStore(dsn, schema=schema, shared=shared, name=name), poll="50ms")

        async def work(word="done"):
            self.ran.append((current_run().job_id, name, word))
            return word

        async def fail():
            self.ran.append((current_run().job_id, name, "failed"))
            msg = "it was to fail"
            raise ValueError(msg)

        s.register("work", work)
        s.register("fail", fail)
        self.agents[name] = await self._stack.enter_async_context(s)
        return s

    def runs(self, id):
        return [word for job_id, _, word in self.ran if job_id == id]

    async def settled(self):
        """Wait until all agents say the same of who has which job, and each has at least one."""
        names = set(self.agents)
        await until(lambda: {tuple(job.agent for job in s.jobs()) for s in self.agents.values()} and self._agree(names))

    async def clear(self):
        """Remove all jobs, and wait until no node has one."""
        for id in [job.id for job in self.agents["one"].jobs()]:
            self.agents["one"].get(id).remove()
        await until(lambda: not any(s.jobs() for s in self.agents.values()))

    def _agree(self, names):
        said = [{job.id: job.agent for job in s.jobs()} for s in self.agents.values()]
        return all(each == said[0] for each in said) and set(said[0].values()) == names


@pytest.fixture(scope="module", params=PLACES)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
async def standing(kind, postgres_server, anyio_backend):
    """The agents of this place, which stay from test to test; None where each test has its own."""
    if kind == "moving":
        yield None
        return
    schema = f"verbs_{next(NUMBERS)}"  # workers that share out the tests may come back to a place
    async with AsyncExitStack() as stack:
        yield await fleet_of(kind, Fleet(postgres_server.dsn, schema, stack))


async def fleet_of(kind, fleet):
    await fleet.start("one", shared=kind != "alone")
    if kind != "alone":
        await fleet.start("two")
    return fleet


class Place:
    """Where a verb is asked: `s` is asked, and `handle` is its handle of a job. `owner` has that job, or had it."""

    def __init__(self, fleet, s, id, owner):
        self.fleet, self.s, self.id, self.owner = fleet, s, id, owner
        self.handle = s.get(id)

    def new(self, count):
        """Name jobs that no test has had."""
        return [f"new {self.fleet.turn}.{number}" for number in range(count)]


async def place_of(fleet, kind):
    fleet.turn += 1
    one, two = fleet.agents["one"], fleet.agents.get("two")
    ids = [f"job {fleet.turn}.{number}" for number in range(JOBS)]
    for id in ids:
        one.add("work", FAR, id=id)
    await one.flush()
    if two is None:
        return Place(fleet, one, ids[0], one)
    await fleet.settled()
    id = next(job.id for job in two.jobs() if job.agent == "two")
    if kind == "moving":
        await fleet.start("three")  # from now on parts go there, one after another
    return Place(fleet, two if kind == "owner" else one, id, two)


@pytest.fixture
async def place(kind, standing, postgres_server, postgres_schema):
    async with AsyncExitStack() as stack:
        fleet = standing or await fleet_of(kind, Fleet(postgres_server.dsn, postgres_schema, stack))
        yield await place_of(fleet, kind)
        if standing:
            await fleet.clear()


async def test_a_run_that_is_asked_for_has_an_outcome(place):
    """It runs once, whoever has the job, and whoever asked is told how it ended."""
    end = await place.handle.run_now()
    assert (end.outcome, end.result, end.error) == (Outcome.SUCCEEDED, "done", None)
    assert place.fleet.runs(place.id) == ["done"]
    await place.s.flush()
    [record] = await place.s.history(place.id)
    assert (record.outcome, record.due) == (Outcome.SUCCEEDED, end.due)


async def everywhere(place, holds):
    """Wait until each agent has it so."""
    await until(lambda: all(holds(s) for s in place.fleet.agents.values()))


async def test_a_run_that_fails_has_that_outcome(place):
    """With its error, and the record has the same."""
    place.handle.update(func="fail")
    end = await place.handle.run_now()
    assert (end.outcome, end.error) == (Outcome.FAILED, "ValueError: it was to fail")
    assert "ValueError" in end.traceback


async def test_many_runs_that_are_asked_for_at_once_overlap(place):
    """One of them runs. Of the others each has its end, runs after it, or came while it ran: no limit is full."""
    ends = [await each for each in [place.handle.run_now() for _ in range(5)]]
    assert {end.outcome for end in ends} <= {Outcome.SUCCEEDED, Outcome.MISSED}
    assert {end.reason for end in ends if end.outcome is Outcome.MISSED} <= {MissedReason.OVERLAP}
    ran = {end.due for end in ends if end.outcome is Outcome.SUCCEEDED}
    assert len(ran) == len(place.fleet.runs(place.id)) > 0


async def test_a_run_that_is_asked_for_beside_ticks_that_are_about_to_begin_has_the_end_of_one(place):
    """It was told "missed: store" while a tick waited for its mark, though the limits were free."""
    place.handle.update(schedule=Every("15ms"))
    await place.s.flush()
    with anyio.fail_after(PATIENCE):
        ends = [await place.handle.run_now() for _ in range(40)]
    place.handle.update(schedule=FAR)
    await place.s.flush()  # written after another node has removed the job, its row would be there again
    assert {(end.outcome, end.error) for end in ends} == {(Outcome.SUCCEEDED, None)}


async def test_a_start_that_is_set_comes(place):
    """Once, and the job is back on its schedule."""
    place.handle.set_next_start(datetime.now(UTC) + timedelta(seconds=0.3))
    await place.s.flush()
    await until(lambda: place.fleet.runs(place.id) == ["done"])
    await everywhere(place, lambda s: s.get(place.id).next_start > datetime.now(UTC))


async def test_a_start_is_skipped_once(place):
    """Whoever was asked: it has a record, and the job goes on with the start after it."""
    place.handle.skip()
    await place.s.flush()
    reasons = []
    with anyio.fail_after(PATIENCE):
        while not reasons:
            await anyio.sleep(0.05)
            reasons = [record.reason for record in await place.s.history(place.id)]
    assert reasons == [MissedReason.SKIPPED]
    assert place.fleet.runs(place.id) == []


async def test_a_paused_job_is_paused_everywhere(place):
    """With its reason; it still runs when it is asked to; and a resume lets it go everywhere."""
    place.handle.pause("by hand")
    await place.s.flush()
    await everywhere(place, lambda s: s.get(place.id).state is JobState.DISABLED and "by hand" in s.get(place.id).error)
    assert (await place.handle.run_now()).outcome is Outcome.SUCCEEDED
    place.handle.resume()
    await place.s.flush()
    await everywhere(place, lambda s: s.get(place.id).state is JobState.SCHEDULED and s.get(place.id).next_start)


async def test_a_pause_that_ends_by_itself_ends_everywhere(place):
    """Its agent ends it, and the others follow."""
    place.handle.pause("for a moment", until=datetime.now(UTC) + timedelta(seconds=0.5))
    await everywhere(place, lambda s: s.get(place.id).state is JobState.SCHEDULED and s.get(place.id).error is None)


async def test_all_jobs_are_paused_everywhere(place):
    """Those of others too; and so are the jobs of a tag."""
    place.s.pause(reason="all of them")
    await everywhere(place, lambda s: all(job.state is JobState.DISABLED for job in s.jobs()))
    place.s.resume()
    await everywhere(place, lambda s: all(job.state is JobState.SCHEDULED for job in s.jobs()))
    place.handle.update(tags=["slow"])
    place.s.pause("slow")
    await everywhere(place, lambda s: [job.id for job in s.jobs() if job.state is JobState.DISABLED] == [place.id])
    place.s.resume("slow")
    await everywhere(place, lambda s: all(job.state is JobState.SCHEDULED for job in s.jobs()))


async def test_a_changed_job_is_changed_everywhere(place):
    """Its next run is called with the new arguments, and its new schedule holds."""
    place.handle.update(args=("changed",), name="Ada", schedule=Every("800d"))
    await place.s.flush()
    assert (await place.handle.run_now()).result == "changed"
    await everywhere(place, lambda s: (s.get(place.id).name, str(s.get(place.id).schedule)) == ("Ada", "@every 800d"))


async def test_a_new_schedule_may_have_a_start(place):
    """It comes then, or at once if its agent hears of it later, and the grid goes through it."""
    start = datetime.now(UTC) + timedelta(seconds=1.5)
    place.handle.update(schedule=FAR, start=start)
    await until(lambda: place.fleet.runs(place.id) == ["done"])
    for s in place.fleet.agents.values():
        await s.flush()
    [record] = await place.s.history(place.id)
    assert record.due >= start - timedelta(seconds=0.001)


async def test_a_removed_job_is_gone_everywhere(place):
    """Nothing of it starts any more."""
    place.handle.remove()
    await place.s.flush()
    await everywhere(place, lambda s: place.id not in s)
    assert place.fleet.runs(place.id) == []


async def test_a_disabled_job_comes_back_with_a_resume(place):
    """It had failed too often."""
    place.handle.update(func="fail", retry=Retry.constant("1s", max_retries=0))
    await place.handle.run_now()
    await everywhere(place, lambda s: s.get(place.id).state is JobState.DISABLED)
    place.handle.resume()
    place.handle.update(func="work")
    await everywhere(place, lambda s: s.get(place.id).state is JobState.SCHEDULED)
    assert (await place.handle.run_now()).outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("start", ["now", "soon", None])
async def test_an_added_job_starts_as_it_was_asked_to(place, start):
    """Whoever has it."""
    when = datetime.now(UTC) + timedelta(seconds=0.4)
    ids = place.new(8)
    for id in ids:
        place.s.add("work", FAR, id=id, start=when if start == "soon" else start)
    await place.s.flush()
    if start is not None:
        await until(lambda: all(place.fleet.runs(id) == ["done"] for id in ids))
    await everywhere(place, lambda s: all(id in s and s.get(id).next_start for id in ids))
    for s in place.fleet.agents.values():
        await s.flush()
    if start == "soon":
        for id in ids:
            [record] = await place.s.history(id)
            assert abs((record.due - when).total_seconds()) < 0.001
    if start is None:
        assert not any(place.fleet.runs(id) for id in ids)


async def test_many_jobs_are_added_in_one_call(place):
    """Each is begun by whose it is."""
    ids = place.new(40)
    place.s.add_many("work", [(id, FAR) for id in ids], start="now")
    await until(lambda: all(place.fleet.runs(id) == ["done"] for id in ids))


async def test_a_replaced_job_begins_anew(place):
    """Its counts are gone, its pause too."""
    assert (await place.handle.run_now()).outcome is Outcome.SUCCEEDED
    place.handle.pause("before")
    await place.s.flush()
    place.s.add("work", FAR, id=place.id, args=("new",), on_conflict="replace", start="now")
    await until(lambda: place.fleet.runs(place.id) == ["done", "new"])
    await everywhere(place, lambda s: s.get(place.id).state is JobState.SCHEDULED)
    await until(lambda: counts(place) == 1)


def counts(place):
    """The runs that the agent of the job counts."""
    agents = place.fleet.agents
    return agents[place.s.get(place.id).agent or "one"].get(place.id).statistics().runs
