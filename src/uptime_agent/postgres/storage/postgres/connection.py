"""A connection without endless waits, and its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from ...contract import StoreUnavailable
from ..errors import StoreUnusable, Unstorable

T = TypeVar("T")

PATIENCE: Final = 200
"""Tenths of a second, per transaction."""

_DEFAULTS: Final = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "application_name": "timerqueue metrics",
}
_SETTINGS: Final = """
    SELECT set_config('statement_timeout', '15s', true), set_config('lock_timeout', '3s', true),
        set_config('idle_in_transaction_session_timeout', '30s', true)
"""
"""Set in each transaction: behind a pooler the next may be in another session."""

_LASTING: Final = ("0A", "3F", "42", "XX001", "XX002")
"""Waiting does not cure these: no such feature, schema, table or right; damage."""

_UNSTORABLE: Final = ("22", "54")


class MetricsServerSilent(psycopg.OperationalError):
    """The server was silent too long, or we interrupted."""


class MetricsConnection(psycopg.Connection[TupleRow]):
    """A connection that gives up on a silent server: no timeout ends a wait for a frozen machine."""

    silence = 0
    is_unwanted = False

    def wait(self, gen: PQGen[T], *args: Any, **kwargs: Any) -> T:
        """Wait like psycopg, which returns every tenth of a second."""
        return super().wait(self._impatient(gen), *args, **kwargs)

    def _impatient(self, gen: PQGen[T]) -> PQGen[T]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready:
                    self._count_silence(gen)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _count_silence(self, gen: PQGen[T]) -> None:
        self.silence += 1
        if self.silence >= PATIENCE or self.is_unwanted:
            gen.close()
            self.close()
            reason = "it is being closed" if self.is_unwanted else f"no answer for {PATIENCE / 10:.0f} s"
            raise MetricsServerSilent(reason)

    @contextmanager
    def short_transaction(self) -> Iterator[None]:
        """A transaction with deadlines. An error closes the connection."""
        self.silence = 0
        try:
            self.execute("BEGIN")
            self.execute(_SETTINGS)
            yield
            self.execute("COMMIT")
        except BaseException:
            self.close()
            raise


def connect(dsn: str, password: str | None = None) -> MetricsConnection:
    """Connect. Raises psycopg.Error."""
    said = conninfo_to_dict(dsn)
    ours = {name: value for name, value in _DEFAULTS.items() if name not in said} | {"client_encoding": "UTF8"}
    ours |= {} if password is None else {"password": password}
    return MetricsConnection.connect(make_conninfo(dsn, **ours), autocommit=True, prepare_threshold=None)


def described(dsn: str) -> str:
    """Return where it leads, without a password. Raises ValueError for an invalid dsn."""
    try:
        parameters = conninfo_to_dict(dsn)
    except psycopg.Error:  # whose message would show a part of the text, and that may be the password
        msg = "not what libpq understands: give a URL as postgresql://user@host/database, or host=... dbname=..."
        raise ValueError(msg) from None
    shown = ("host", "hostaddr", "port", "user", "dbname", "service")
    return " ".join(f"{name}={parameters[name]}" for name in shown if parameters.get(name))


@contextmanager
def errors(where: str) -> Iterator[None]:
    """Raise errors as a store's, without rows in them."""
    try:
        yield
    except psycopg.Error as error:
        code = error.sqlstate or ""
        reason = " ".join((error.diag.message_primary or str(error)).split()) or type(error).__name__
        told = f"{where}: {reason} ({code or type(error).__name__})"
        if code.startswith(_UNSTORABLE):
            raise Unstorable(told) from error
        if code.startswith(_LASTING) and code != "42P01":  # a table that was just dropped is made again
            raise StoreUnusable(told) from error
        raise StoreUnavailable(told) from error


__all__ = ["MetricsConnection", "connect", "described", "errors", "psycopg", "sql"]
