"""What a store can do beyond the ten verbs is found by `capabilities`, and nowhere else."""

import re
from pathlib import Path

import pytest
from attrs import asdict, fields

import scheduler
from scheduler.stores import Capabilities, Store, capabilities
from scheduler.stores.memory import MemoryStore
from scheduler.stores.postgres import PostgresStore
from scheduler.stores.sqlite import SQLiteStore

SOURCE = Path(scheduler.__file__).parents[1]


NAMES = {field.name for field in fields(Capabilities)}


def found(store):
    return {name for name, each in asdict(capabilities(store), recurse=False).items() if each is not None}


@pytest.mark.parametrize(
    ("store", "can"),
    [
        (None, set()),
        (SQLiteStore("jobs.db"), {"made_changes"}),
        (MemoryStore(), {"executions", "made_changes"}),
        (PostgresStore("postgresql:///x"), {"executions", "fleet", "locked", "made_changes"}),
        (
            PostgresStore("postgresql:///x", shared=True),
            {"executions", "fleet", "locked", "made_changes", "sharing", "lending", "voting"},
        ),
    ],
    ids=["no store", "SQLite", "memory", "PostgreSQL", "shared PostgreSQL"],
)
def test_a_store_can_do_what_it_has(store, can):
    """A capability that is None, or not there, is lacking."""
    assert found(store) == can


def test_no_capability_is_one_of_the_ten_verbs():
    """Every store has the ten verbs, and nobody asks whether it has them."""
    assert not NAMES & {*vars(Store)}


def test_capabilities_are_looked_for_in_one_place():
    """Whoever writes a store finds in one place what it may have."""
    looked = re.compile(rf'getattr\([^)]*"({"|".join(NAMES)})"')
    places = [path for path in SOURCE.rglob("*.py") if looked.search(path.read_text())]
    assert [path.name for path in places] == ["_store.py"]
