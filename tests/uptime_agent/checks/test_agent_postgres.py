"""Checks of postgresql:// targets: a server is up that answers a query, and one that is full is there all the same."""

import anyio
import psycopg
import pytest

import hostile_postgres
import postgres_versions
from uptime_agent.checks import CheckFailed, Status
from uptime_agent.checks.postgres import POSTGRES, PostgresCheck
from uptime_agent.testing import StreamConformance
from uptime_agent.testing._servers import serving
from uptime_agent.text import parse_url
from uptime_agent.toml import Unfit


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
        return [{"sslmode": "disable", "require_auth": "none"}]

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


@pytest.mark.parametrize(
    ("options", "is_sent"),
    [
        ({}, False),
        ({"sslmode": "disable"}, False),
        ({"require_auth": "scram-sha-256"}, False),
        ({"require_auth": "!md5"}, True),
        ({"require_auth": "password"}, True),
        ({"sslmode": "require"}, True),
    ],
)
async def test_no_password_is_sent_in_clear_unless_the_file_says_so(options, is_sent, serve, tls, attempt):
    """Over TLS it may be. The error says what to do; a server without TLS is one that somebody may stand before."""
    asking = hostile_postgres.asking_in_clear(tls if options == {"sslmode": "require"} else None)
    server = await serve(asking)
    url = parse_url(f"postgresql://me:canary@127.0.0.1:{server.port}/d", POSTGRES.schemes)
    check = PostgresCheck(url=url, **{name: POSTGRES.options[name](value) for name, value in options.items()})
    with pytest.raises(CheckFailed) as refused:
        await check.attempt(attempt())
    assert [b"canary" in each for each in server.requests] == ([True] if is_sent else [])
    if not is_sent and "require_auth" not in options:
        assert 'say sslmode = "require", or require_auth = "password"' in str(refused.value)
    assert check.may_send_in_clear is (is_sent and "sslmode" not in options)


@pytest.mark.parametrize("value", ["", "password,!md5", "passwort", 1, "md5,"])
def test_a_way_to_log_in_that_libpq_does_not_know_is_refused(value):
    """When the file is read, not at each check."""
    with pytest.raises(Unfit, match="expected ways to log in such as"):
        POSTGRES.options["require_auth"](value)
