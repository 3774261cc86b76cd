"""Each kind of metric store, empty."""

import pytest

from scheduler.agent.postgres.storage import MemoryMetrics, SqliteMetrics


def maker_of(kind, request):
    """Return what makes stores of this kind, each time over the same file or schema."""
    path = request.getfixturevalue("tmp_path") / "metrics.db"
    return lambda **options: SqliteMetrics(path, **options)


DURABLE = ["sqlite"]


@pytest.fixture(params=DURABLE)
def place(request):
    """Make stores that find what another has written."""
    return maker_of(request.param, request)


@pytest.fixture(params=["memory", *DURABLE])
def store(request):
    """An open store of each kind."""
    made = MemoryMetrics() if request.param == "memory" else maker_of(request.param, request)()
    made.open()
    yield made
    made.close()
