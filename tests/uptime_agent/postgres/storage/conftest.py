"""Each kind of metric store, empty."""

import pytest

from uptime_agent.postgres.storage import MemoryMetrics, SqliteMetrics, postgres_metrics


def maker_of(kind, request):
    """Return what makes stores of this kind, each time over the same file or schema."""
    if kind == "postgres":
        server, schema = map(request.getfixturevalue, ("postgres_server", "postgres_schema"))
        return lambda **options: postgres_metrics(server.dsn, schema=f"metrics_{schema}", **options)
    path = request.getfixturevalue("tmp_path") / "metrics.db"
    return lambda **options: SqliteMetrics(path, **options)


DURABLE = ["sqlite", "postgres"]


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
