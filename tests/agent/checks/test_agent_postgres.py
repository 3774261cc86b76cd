"""Checks of postgresql:// targets: a server is up that answers a query, and one that is full is there all the same."""

import anyio
import psycopg
import pytest

import postgres_versions
from scheduler.agent.checks import CheckFailed, Status
from scheduler.agent.checks.postgres import POSTGRES, PostgresCheck
from scheduler.agent.text import parse_url
from scheduler.testing.checks import StreamConformance
from scheduler.testing.checks._servers import serving


@pytest.fixture(scope="module")
def small():
    """Start a server with few places."""
    try:
        with postgres_versions.server(
            17, max_connections=4, superuser_reserved_connections=0, max_wal_senders=0
        ) as server:
            yield server
    except postgres_versions.Missing as error:
        pytest.skip(str(error))


@pytest.fixture
def relay(small):
    """Make a handler that hands a connection on to a real server."""

    async def handle(stream):
        async with await anyio.connect_unix(f"{small.folder}/.s.PGSQL.5432") as server:

            async def copy(source, sink):
                try:
                    async for data in source:
                        await sink.send(data)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass
                group.cancel_scope.cancel()

            async with anyio.create_task_group() as group:
                group.start_soon(copy, stream, server)
                group.start_soon(copy, server, stream)

    return handle


class TestPostgres(StreamConformance):
    """postgresql://, with a real server behind a relay on loopback."""

    @pytest.fixture
    def kind(self):
        return POSTGRES

    @pytest.fixture
    def examples(self):
        return [{"sslmode": "disable"}]

    @pytest.fixture
    def well(self, relay):
        return relay


def check_of(port, user="postgres"):
    """Make the check of a port."""
    return PostgresCheck(
        url=parse_url(f"postgresql://{user}@127.0.0.1:{port}/postgres", POSTGRES.schemes), sslmode="disable"
    )


async def test_a_server_that_is_full_is_degraded_and_the_error_says_so(relay, small, attempt):
    """53300: it is there, and works for those who are in."""
    guests = [psycopg.connect(small.dsn) for _ in range(4)]
    try:
        async with serving(relay) as server:
            finding = await check_of(server.port).attempt(attempt())
    finally:
        for each in guests:
            each.close()
    assert finding.status is Status.DEGRADED
    assert "53300" in finding.error


async def test_a_role_that_may_not_come_in_is_told(relay, attempt):
    """The server's own words."""
    async with serving(relay) as server:
        with pytest.raises(CheckFailed, match='role "nobody_there" does not exist'):
            await check_of(server.port, "nobody_there").attempt(attempt())
