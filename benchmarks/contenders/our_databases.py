"""Where our scheduler's stores keep their data: each kind gives fresh store objects over the same data.

A database is made in the temporary folder of this process and is gone with it.
"""

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen
from child import Unable
from meters import family_cpu_s

from scheduler import Store
from scheduler.stores.sqlite import SQLiteStore

TESTS = Path(__file__).parents[2] / "tests" / "kit" / "servers"


@frozen
class Database:
    """`place`: where the data are, as `make` takes it, in any process. `server_pid`: of whoever else works for it."""

    place: str
    make: Callable[[str], Store]
    server_pid: int | None = None

    def store(self) -> Store:
        """A store object that has not been opened."""
        return self.make(self.place)

    def server_cpu_s(self) -> float:
        """CPU seconds of the server's processes; 0 without one."""
        return 0.0 if self.server_pid is None else family_cpu_s(self.server_pid)


@contextmanager
def sqlite() -> Iterator[Database]:
    """A file, as the store has it by default: WAL, synchronous FULL."""
    with tempfile.TemporaryDirectory(prefix="bench-sqlite-") as folder:
        yield Database(str(Path(folder) / "jobs.db"), SQLiteStore)


@contextmanager
def postgres() -> Iterator[Database]:
    """A server of our own on a Unix socket, with fsync on and its other settings as it brings them."""
    with _postgres_server()(fsync=True) as server:
        yield Database(server.dsn, postgres_store, server.pid)


def postgres_store(dsn: str) -> Store:
    """Imported only here, because the driver is an extra."""
    from scheduler.stores.postgres import PostgresStore  # noqa: PLC0415

    return PostgresStore(dsn)


def _postgres_server() -> Any:
    """The server that the tests use, too."""
    if importlib.util.find_spec("psycopg") is None:
        raise Unable("psycopg is not installed")
    sys.path.insert(0, str(TESTS))
    if importlib.util.find_spec("postgres_server") is None:
        raise Unable(f"there is no postgres_server.py in {TESTS}")
    from postgres_server import PostgresServer  # noqa: PLC0415 - it stands with the tests, and needs the driver

    return PostgresServer
