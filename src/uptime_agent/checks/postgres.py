"""PostgreSQL: a server lets us in and answers a query."""

from __future__ import annotations

import errno
from typing import Final
from urllib.parse import unquote

import anyio
from attrs import frozen

from ..libpq import Connection, NoDriver, Query, Server, ServerError, ServerFull, Unreachable, auth_methods
from ..text import Url
from ..toml import Option, one_of
from .contract import Attempt, CheckFailed, Finding, Kind, Status

MAX_SECONDS: Final = 3600.0
"""Seconds. No check waits longer."""
USER: Final = "postgres"
"""By default: this process's user is no role."""

QUERY: Final = Query(b"SELECT 1", MAX_SECONDS, width=1, most_rows=1)

MODES: Final = {each: each for each in ("disable", "prefer", "require", "verify-ca", "verify-full")}


@frozen(kw_only=True)
class PostgresCheck:
    """Up if a query is answered, degraded if the server is full."""

    url: Url
    sslmode: str = "prefer"
    require_auth: str | None = None

    @property
    def may_send_in_clear(self) -> bool:
        """Whether its password may travel unencrypted."""
        return self.server.may_send_in_clear

    @property
    def secrets(self) -> frozenset[str]:
        """Texts never to show."""
        return self.url.secrets

    @property
    def server(self) -> Server:
        """The server of the URL."""
        url = self.url
        options = {"sslmode": self.sslmode, "require_auth": self.require_auth}
        return Server(
            host=url.host,
            port=url.port,
            user=url.user or USER,
            password=url.password,
            database=unquote(url.target.strip("/")) or "postgres",
            options={name: value for name, value in options.items() if value is not None},
        )

    async def attempt(self, at: Attempt) -> Finding:
        """Log in and ask. Raises CheckFailed, TimeoutError."""
        try:
            connection = Connection(self.server, at.address, lambda: at.watch.elapsed)
        except NoDriver as exc:
            return Finding(status=Status.UNKNOWN, error=str(exc))
        try:
            return await self._asked(at, connection)
        except (Unreachable, ServerError) as exc:
            raise CheckFailed(str(exc)) from None
        finally:
            rest = connection.leave()
            if rest is not None:
                rest.close()

    async def _asked(self, at: Attempt, connection: Connection) -> Finding:
        at.watch.begin("connect")
        try:
            with anyio.fail_after(at.connect_within):
                await connection.connect()
        except ServerFull as exc:
            return Finding(status=Status.DEGRADED, error=str(exc))
        except Unreachable as exc:
            if "Connection refused" in str(exc):  # as the system says it, whatever the server's language
                raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused") from None
            raise
        finally:
            if "connect" in connection.phases:
                at.watch.end()
        with at.watch.measure("query"):
            answer = await connection.fetch(QUERY)
        if answer.rows != ((b"1",),):
            raise CheckFailed("the server answers SELECT 1 by something else than 1")
        major, minor = divmod(connection.server_version, 10_000)
        role = {True: "standby", False: "primary", None: "unknown"}[connection.is_standby]
        return Finding(detail={"version": f"{major}.{minor}", "role": role})


POSTGRES: Final = Kind(
    "postgres",
    {"postgresql": 5432},
    PostgresCheck,
    {
        "sslmode": Option(one_of(MODES), "how the connection is encrypted, as libpq has it", "prefer"),
        "require_auth": Option(
            auth_methods,
            "which ways to log in are allowed, as libpq has it. By default none that sends the password as it is "
            "without TLS",
        ),
    },
    meaning="up if the server lets us in and answers a query",
)
