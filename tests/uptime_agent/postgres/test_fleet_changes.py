"""A fleet follows its configuration while it runs: what is new, other or gone, and nothing else, is touched."""

import contextlib
import threading

import anyio
import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from kit import PATIENCE, until
from postgres_fleets import OURS, MemoryMetrics, fleet_on, ours_on, probe, rows_on, server_of
from timerqueue import SystemClock
from uptime_agent.postgres import Choice, PlanChanges, PostgresTarget, compared
from uptime_agent.postgres.contract import OutcomeKind, Scope

plans = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2))


@given(plans, plans)
def test_changes_are_what_leads_from_one_plan_to_the_other(before, after):
    """What is the same stands nowhere."""
    changes = compared(before, after)
    now = {key: value for key, value in before.items() if key not in changes.removed}
    now |= {key: after[key] for key in (*changes.added, *changes.changed)}
    assert now == after
    assert not set(changes.added) & set(before)
    assert all(before[key] != after[key] for key in changes.changed)
    assert bool(changes) == (before != after)


def jobs_of(fleet):
    """Return the jobs of a fleet by their ids. There is one for each id, as `list` shows, and no other."""
    jobs = fleet.scheduler.jobs()
    assert len(jobs) == len({job.id for job in jobs})
    return {job.id: job for job in jobs}


def main_of(fleet, **changes):
    """Return the target `main` with some changes."""
    return evolve(fleet.members["main"].target, **changes)


def backends_of(server):
    """Return the process ids of our connections."""
    return {pid for (pid,) in rows_on(server, f"SELECT pid FROM pg_stat_activity WHERE {OURS}")}


async def next_of(fleet, name, **wanted):
    """Wait for one more outcome of a probe."""
    so_far = len(fleet.store.of(name))
    await until(lambda: len(fleet.store.of(name)) > so_far)
    return fleet.store.of(name)[so_far]


async def test_what_is_the_same_is_not_touched(postgres_of):
    """Neither its jobs nor its connection are others afterwards, however often it is read again."""
    async with fleet_on(postgres_of(18), probe("one"), probe("two")) as fleet:
        await until(lambda: len(fleet.store.of("one")) >= 2)
        jobs, backends = jobs_of(fleet), backends_of(postgres_of(18))
        for _ in range(5):
            assert fleet.follow([evolve(main_of(fleet))]) == PlanChanges()
        await next_of(fleet, "one")
        assert all(jobs_of(fleet)[id] is job for id, job in jobs.items())
        assert backends_of(postgres_of(18)) == backends
    dues = [each.due for each in fleet.store.of("one")]
    assert {round((due - dues[0]) / 0.1, 3) % 1 for due in dues} == {0}  # on the phase, whatever is left out
    assert len(set(dues)) == len(dues)


async def test_a_target_that_is_added_is_probed_and_one_that_is_removed_no_more(postgres_of):
    """Its connections end by themselves; the other's go on."""
    server = postgres_of(18)
    async with fleet_on(server, probe()) as fleet:
        await next_of(fleet, "one")
        backends = backends_of(server)
        main, second = main_of(fleet), PostgresTarget(name="second", server=server_of(server))
        assert fleet.follow([main, second]) == PlanChanges(added=("second",))
        await until(lambda: {each.target for each in fleet.store.outcomes} == {"main", "second"})
        assert fleet.follow([main]) == PlanChanges(removed=("second",))
        assert set(jobs_of(fleet)) == {"probe:main:one"}
        await until(lambda: backends_of(server) == backends)
        before = [each.target for each in fleet.store.outcomes].count("second")
        for _ in range(3):
            await next_of(fleet, "one")
    assert [each.target for each in fleet.store.outcomes].count("second") <= before + 1  # what was on its way


async def test_a_target_that_is_disabled_is_gone_until_it_is_enabled(postgres_of):
    """As if it stood nowhere."""
    async with fleet_on(postgres_of(18), probe()) as fleet:
        await next_of(fleet, "one")
        main = main_of(fleet)
        assert fleet.follow([evolve(main, is_enabled=False)]).removed == ("main",)
        assert not jobs_of(fleet)
        await until(lambda: not ours_on(postgres_of(18)))
        assert fleet.follow([main]).added == ("main",)
        await next_of(fleet, "one")


async def test_disabling_a_probe_cancels_what_it_does_on_the_server_at_once(postgres_of):
    """Whatever scope says so; the run has its record, and probes beside it go on. Defect 1."""
    server = postgres_of(18)
    is_asleep = f"{OURS} AND query LIKE '%pg_sleep(600)%' AND state = 'active'"
    sleeping = f"SELECT count(*) FROM pg_stat_activity WHERE {is_asleep}"
    long = probe("long", "SELECT 1 FROM pg_sleep(600)", timeout=900, is_cheap=False)
    async with fleet_on(server, probe(), long) as fleet:
        await until(lambda: rows_on(server, sleeping) == [(1,)])
        changes = fleet.follow([main_of(fleet, probes={"long": Choice(is_enabled=False)})])
        assert changes == PlanChanges(changed=("main",))
        assert set(jobs_of(fleet)) == {"probe:main:one"}
        await until(lambda: rows_on(server, sleeping) == [(0,)])
        await next_of(fleet, "one")
    assert {each.kind for each in fleet.store.of("long")} == {OutcomeKind.SKIPPED}  # ticks that found it running, too
    assert [each.reason.startswith("cut off") for each in fleet.store.of("long")].count(True) == 1


async def test_a_probe_that_is_enabled_starts(postgres_of):
    """Off by the catalogue, on by the target, off again."""
    async with fleet_on(postgres_of(18), probe(), probe("extra", is_enabled=False)) as fleet:
        await next_of(fleet, "one")
        assert not fleet.store.of("extra")
        fleet.follow([main_of(fleet, probes={"extra": Choice(is_enabled=True)})])
        await next_of(fleet, "extra")
        fleet.follow([main_of(fleet, probes={})])
        assert set(jobs_of(fleet)) == {"probe:main:one"}


async def test_an_interval_that_is_changed_and_changed_back_leaves_one_job_at_its_old_place(postgres_of):
    """The job is the same all the time, and each tick lies on the grid of its interval. Defect 2."""
    async with fleet_on(postgres_of(18), probe()) as fleet:
        await next_of(fleet, "one")
        [job] = jobs_of(fleet).values()
        phase = fleet.store.of("one")[0].due % 0.1
        for every in (0.25, 0.1, 0.25, 0.1):
            fleet.follow([main_of(fleet, probes={"one": Choice(every=every)})])
            assert [*jobs_of(fleet).values()] == [job]
        await until(lambda: len(fleet.store.outcomes) >= 5)
        dues = sorted({each.due for each in fleet.store.outcomes})
        assert len(dues) == len(fleet.store.outcomes), "two jobs would be due at the same instants"
    assert {round((due - phase) / 0.1 - round((due - phase) / 0.1), 3) for due in dues} == {0.0}


async def test_another_interval_holds_from_now_on_and_not_after_the_wait_for_the_old_one(postgres_of):
    """A probe that waits for an hour, and shall run ten times a second, does so. Defects 3 and 4."""
    store = MemoryMetrics({("main", "one"): SystemClock().wall()})
    async with fleet_on(postgres_of(18), probe(every=3600), store=store) as fleet:
        await until(lambda: jobs_of(fleet))
        before = jobs_of(fleet)["probe:main:one"].next_start
        assert not store.outcomes
        fleet.follow([main_of(fleet, probes={"one": Choice(every=0.1)})])
        await until(lambda: len(store.of("one")) >= 3)
        fleet.follow([main_of(fleet, probes={"one": Choice(every=3600)})])
        assert jobs_of(fleet)["probe:main:one"].next_start == before
    dues = [each.due for each in store.of("one")]
    assert {round((due - dues[0]) / 0.1, 3) % 1 for due in dues} == {0}  # on the phase, whatever is left out
    assert len(set(dues)) == len(dues)


async def test_a_probe_that_is_removed_before_its_first_run_has_none(postgres_of):
    """Also while it is still asked where its samples leave off: who answers late finds it gone. Defect 3."""
    async with fleet_on(postgres_of(18), probe(), probe("other")) as fleet:
        await next_of(fleet, "other")
        fleet.follow([main_of(fleet, probes={"one": Choice(is_enabled=False)})])
        fleet.follow([main_of(fleet, probes={})])
        fleet.follow([main_of(fleet, probes={"one": Choice(is_enabled=False)})])
        so_far = len(fleet.store.of("one"))
        for _ in range(3):
            await next_of(fleet, "other")
        assert set(jobs_of(fleet)) == {"probe:main:other"}
        assert len(fleet.store.of("one")) <= so_far + 1  # the one that was under way when it was cut off


class Hesitant(MemoryMetrics):
    """A store that says when the last sample was due once it is let."""

    def __init__(self):
        super().__init__()
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def last(self, target, probe):
        """Wait, and know nothing."""
        self.is_asked.set()
        assert self.may_answer.wait(PATIENCE)


async def test_what_the_store_answers_too_late_adds_no_job(postgres_of):
    """Disabled, enabled, disabled while it is asked: whoever was to be added then is not wanted any more."""
    store = Hesitant()
    async with fleet_on(postgres_of(18), probe(), probe("other"), store=store) as fleet:
        await until(store.is_asked.is_set)
        main = main_of(fleet)
        off = main_of(fleet, probes={"one": Choice(is_enabled=False)})
        for target in (off, main, off):
            fleet.follow([target])
        store.may_answer.set()
        await next_of(fleet, "other")
        assert set(jobs_of(fleet)) == {"probe:main:other"}
    assert not store.of("one")


async def test_a_limit_is_resized_while_connections_are_in_use(postgres_of):
    """Upwards at once, downwards as they are given back; idle ones go first. Defect 12."""
    server = postgres_of(18)
    for name in ("grow_1", "grow_2", "grow_3"):
        rows_on(server, f"CREATE DATABASE {name}")
    each_one = probe("each", "SELECT 1 FROM pg_sleep(0.05)", scope=Scope.DATABASE)
    try:
        async with fleet_on(server, each_one, include=("grow_*",), limit=1) as fleet:
            most = await most_ours(server, fleet, "each", 9)
            assert most == 1
            fleet.follow([main_of(fleet, limit=3)])
            await until(lambda: ours_on(server) == 3)
            fleet.follow([main_of(fleet, limit=1)])
            await until(lambda: ours_on(server) == 1)
            assert await most_ours(server, fleet, "each", 9) == 1
    finally:
        for name in ("grow_1", "grow_2", "grow_3"):
            rows_on(server, f"DROP DATABASE {name} WITH (FORCE)")


async def most_ours(server, fleet, name, runs):
    """Return the most connections that the server counts of ours until a probe has run so often, and one was seen.

    On a busy machine all these runs may end between two looks.
    """
    most, until_then = 0, len(fleet.store.of(name)) + runs
    while len(fleet.store.of(name)) < until_then or not most:
        most = max(most, await anyio.to_thread.run_sync(ours_on, server))
    return most


@pytest.fixture
def another_role(postgres_of):
    """Make a role; it is gone after the test."""
    rows_on(postgres_of(18), "CREATE ROLE another LOGIN")
    yield "another"
    rows_on(postgres_of(18), "DROP ROLE another")


async def test_another_role_is_used_from_the_next_run_on_within_the_same_limit(postgres_of, another_role):
    """Connections of the one before it end when they are given back, and hold their places until then. Defect 13."""
    server = postgres_of(18)
    roles = f"SELECT DISTINCT usename::text FROM pg_stat_activity WHERE {OURS}"
    asleep = f"SELECT count(*) FROM pg_stat_activity WHERE {OURS} AND query LIKE '%pg_sleep(0.3)%' AND state = 'active'"
    slow = probe("two", "SELECT 1 FROM pg_sleep(0.3)", every=0.5)
    async with fleet_on(server, probe(), slow, limit=1) as fleet:
        await next_of(fleet, "one")
        jobs = jobs_of(fleet)
        await until(lambda: rows_on(server, asleep) == [(1,)])  # its connection is borrowed
        fleet.follow([main_of(fleet, server=server_of(server, user=another_role))])
        assert await most_ours(server, fleet, "one", 4) == 1
        await until(lambda: rows_on(server, roles) == [("another",)])
        assert all(jobs_of(fleet)[id] is job for id, job in jobs.items())
    assert {each.failure for each in fleet.store.outcomes} == {None}


async def test_a_target_that_comes_back_at_once_has_no_more_connections_than_its_limit(postgres_of):
    """It takes over the places of what is being left."""
    server = postgres_of(18)
    async with fleet_on(server, probe(every=0.05), limit=1) as fleet:
        for _ in range(5):
            await next_of(fleet, "one")
            main = main_of(fleet)
            fleet.follow([])
            fleet.follow([main])
            assert await anyio.to_thread.run_sync(ours_on, server) <= 1
        assert await most_ours(server, fleet, "one", 5) == 1


async def test_nobody_waits_for_a_borrower_of_a_target_that_is_removed(postgres_of):
    """Its backend stands still, and the others are probed as before. Defects 13 and 15."""
    server = postgres_of(18)
    async with fleet_on(server, probe()) as fleet:
        await next_of(fleet, "one")
        main, second = main_of(fleet), PostgresTarget(name="second", server=server_of(server))
        before = backends_of(server)
        fleet.follow([main, second])
        await until(lambda: len(backends_of(server) - before) == 1)
        with server.frozen(*(backends_of(server) - before)):
            assert fleet.follow([main]).removed == ("second",)
            so_far = len(fleet.store.samples)
            await until(lambda: len(fleet.store.samples) >= so_far + 3)
        await until(lambda: backends_of(server) == before)


async def test_databases_that_are_chosen_otherwise_are_asked_at_the_next_tick(postgres_of):
    """The list that is a minute old does not count any more; pools of others are not touched. Defect 10."""
    server = postgres_of(18)
    with contextlib.ExitStack() as made:
        for name in ("pick_1", "pick_2"):
            rows_on(server, f"CREATE DATABASE {name}")
            made.callback(rows_on, server, f"DROP DATABASE {name} WITH (FORCE)")
        async with fleet_on(server, probe("each", scope=Scope.DATABASE), include=("pick_1",)) as fleet:
            await until(lambda: fleet.store.of("each", "pick_1"))
            fleet.follow([main_of(fleet, include=("pick_2",))])
            await until(lambda: fleet.store.of("each", "pick_2"))
            one = len(fleet.store.of("each", "pick_1"))
            await until(lambda: len(fleet.store.of("each", "pick_2")) >= 3)
            assert len(fleet.store.of("each", "pick_1")) <= one
