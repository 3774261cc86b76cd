"""Whatever befalls a program: what it owes is tried again or given up, and no job waits longer than it should."""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path

import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings, strategies as st

from scheduler import Overlap, Retry
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore

SPEC = spec_from_file_location("life_world", Path(__file__).with_name("life_world.py"))
life_world = module_from_spec(SPEC)
SPEC.loader.exec_module(life_world)
World = life_world.World

SETTINGS = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=25)

NUMBERS = count()
"""Of places, one for each example."""

SECONDS = (1, 7, 30, 61, 130)
STEPS = (-34_560_000, -3_600, -3.3, 3.3, 3_600, 34_560_000)

jobs = st.sampled_from(life_world.IDS)
scopes = st.sampled_from(life_world.PAUSES)
schedules = st.sampled_from(list(life_world.SCHEDULES))
overlaps = st.sampled_from(
    [
        {"overlap": Overlap.ALLOW, "max_running": 3},
        *({"overlap": each} for each in Overlap if each is not Overlap.ALLOW),
    ]
)
deliveries = st.sampled_from([{"delivery": "at_least_once"}] * 4 + [{"delivery": "at_most_once"}])
retries = st.sampled_from([{}, {}, {"retry": Retry.constant("5s", max_retries=2)}])
rooms = st.sampled_from([{}, {}, *({"needs": each} for each in ("x", "y", ("x", "y")))])
options = st.tuples(
    schedules.map(lambda text: {"schedule": text, "tags": ["x"]}), overlaps, deliveries, retries, rooms
).map(lambda parts: {name: value for part in parts for name, value in part.items()})
rooms_or_ranks = st.one_of(rooms, st.sampled_from([{"needs": ()}, {"priority": 5}, {"priority": -5}]))
changes = st.one_of(schedules.map(lambda text: {"schedule": text}), overlaps, deliveries, rooms_or_ranks)
times = st.tuples(st.just("travel"), st.sampled_from(SECONDS))
verbs = st.one_of(
    times,
    times,
    st.tuples(st.just("pause"), scopes),
    st.tuples(st.just("resume"), scopes),
    st.tuples(st.just("update"), jobs, changes),
    st.tuples(st.just("run_now"), jobs),
    st.tuples(st.just("set_next_start"), jobs, st.sampled_from([5, 300])),
    st.tuples(st.just("remove"), jobs),
    st.tuples(st.just("add"), jobs, options, st.sampled_from(["update", "keep", "replace"])),
    st.tuples(st.just("step"), st.sampled_from(STEPS)),
)
edits = st.one_of(
    st.none(),
    st.none(),
    st.tuples(st.just("advance"), st.sampled_from((20, 3_600))),
    st.tuples(st.just("step"), st.sampled_from(STEPS)),
    st.tuples(st.just("schedule"), jobs, schedules),
    st.tuples(
        st.just("options"), jobs, st.sampled_from(["{}", '{"delivery": "at_least_once"}', life_world.UNREADABLE])
    ),
    st.tuples(st.just("row"), jobs),
)


@frozen
class Life:
    """One program: what was done before it began, what it adds, what happens to it, and how it ends."""

    edit: tuple | None
    adds: list
    knows_task: bool
    verbs: list
    end: object


deaths = st.builds(life_world.Death, st.integers(0, 3), st.sampled_from([1, 30, 130]), st.booleans())
lives = st.builds(
    Life,
    edit=edits,
    adds=st.lists(st.tuples(jobs, options, st.sampled_from(["update", "keep", "replace"])), max_size=1),
    knows_task=st.sampled_from([True, True, True, False]),
    verbs=st.lists(verbs, max_size=5),
    end=st.one_of(st.just(life_world.Death()), deaths, st.sampled_from([0, 10])),
)
programs = st.lists(lives, min_size=2, max_size=5)
takes = st.lists(st.sampled_from([1, 12, 45, 400, 400, None]), max_size=4)
first_jobs = st.fixed_dictionaries({"a": options, "b": options})


def edit(world, change):
    """Do what is done while nobody lives."""
    match change:
        case ("advance", seconds):
            world.clock.advance(seconds)
        case ("step", seconds):
            world.step(seconds)
        case ("row", job):
            world.edit(job, row=None)
        case (column, job, value):
            world.edit(job, **{column: value})


def mend(world):
    """Let every row be readable once more."""
    with world.opened() as store:
        broken = [row.id for chunk in store.load() for row, _ in chunk if row.options == life_world.UNREADABLE]
    for job in broken:
        world.edit(job, options='{"delivery": "at_least_once"}')


async def play(make_store, first, takes, program):
    """Live all lives, and one more in which all is mended and resumed and nothing takes long."""
    world = World(make_store, takes)
    async with world.life(life_world.Death(), [(job, each, "keep") for job, each in first.items()]):
        await world.clock.travel(25)
    for life in program:
        edit(world, life.edit)
        async with world.life(life.end, life.adds, knows_task=life.knows_task):
            for verb, *args in life.verbs:
                if verb == "travel":
                    await world.clock.travel(*args)
                    world.look()
                else:
                    await world.do(verb, *args)
    mend(world)
    world.takes = iter(lambda: 1, None)
    async with world.life(10):
        for scope in ("*", "tag:x"):
            await world.do("resume", scope)
        for job in world.s.jobs():
            if job.error is not None:
                await world.do("resume", job.id)
        await world.clock.travel(300)
        world.look()
    world.check_end()
    world.check_attempts()


@SETTINGS
@given(first_jobs, takes, programs)
async def test_random_lives_over_memory(first, takes, program):
    """In one object."""
    await play(MemoryStore().another, first, takes, program)


@settings(SETTINGS, max_examples=10)
@given(first_jobs, takes, programs)
async def test_random_lives_over_sqlite(tmp_path, first, takes, program):
    """In one file."""
    path = tmp_path / f"{next(NUMBERS)}.sqlite"
    await play(lambda: SQLiteStore(path, durability="fast"), first, takes, program)


@pytest.mark.slow
@settings(SETTINGS, max_examples=5)
@given(first_jobs, takes, programs)
async def test_random_lives_over_postgres(postgres_server, postgres_schema, first, takes, program):
    """In one schema of a server."""
    schema = f"{postgres_schema}_{next(NUMBERS)}"
    await play(lambda: PostgresStore(postgres_server.dsn, schema=schema), first, takes, program)
