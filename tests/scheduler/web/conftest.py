"""A scheduler with tasks and each kind of store, its control API, and callers with each scope."""

import pytest

from asgi import Caller
from kit import nothing
from scheduler import Scheduler, rate
from scheduler.stores.memory import MemoryStore
from scheduler.web import Access, app

STORES = ["none", "memory", "sqlite"]


def access(scope):
    """Take the name and the scopes of a caller from a header, as `ann:read`."""
    said = dict(scope["headers"]).get(b"authorization", b"").decode()
    name, _, scopes = said.partition(":")
    return Access(name, frozenset(scopes.split("+"))) if scopes else None


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    """No store, one in memory, and a file of SQLite."""
    return {"none": None, "memory": MemoryStore(), "sqlite": f"sqlite:///{tmp_path}/jobs.db"}[request.param]


@pytest.fixture
def has_store(store):
    """Say whether records are kept."""
    return store is not None


@pytest.fixture
async def s(store):
    """A scheduler that runs."""
    async with Scheduler(store=store, limits={"http": 2, "pace": rate(2, "1s")}) as s:
        s.register("nothing", nothing)
        yield s


@pytest.fixture
def api(s):
    """Its control API."""
    return app(s, access=access)


@pytest.fixture
def admin(api):
    """Call it with every scope."""
    return Caller(api, headers={"authorization": "ann:admin"})


@pytest.fixture
def operator(api):
    """Call it to run and to pause."""
    return Caller(api, headers={"authorization": "otto:operate"})


@pytest.fixture
def reader(api):
    """Call it to read."""
    return Caller(api, headers={"authorization": "rita:read"})


@pytest.fixture
def stranger(api):
    """Call it without access."""
    return Caller(api)
