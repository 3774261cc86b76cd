from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from logging import getLogger
from threading import Lock as ThreadLock
from typing import Literal

from .._store import Opened, StoreError, StoreForked, StoreTakenOver, StoreUnusable, Unstorable
from .connection import (
    Durability,
    connect,
    connect_reader,
    fetch,
    is_about_room,
    is_usable_after,
    translate,
    use_log,
)
from .files import Ballast, Lock, check_writable, create, identity
from .schema import check_current, migrate, version_of

logger = getLogger(__name__)


class Session:
    """A node's use of a SQLite database, from `open` to `close`.

    One connection writes; readers wait for no commit. An error that may have spoiled a connection closes it.
    """

    def __init__(self, path: str, durability: Durability) -> None:
        self._path = path
        self._real = os.path.realpath(path)  # two names of one file have one lock
        self._durability: Durability = durability
        self._lock = Lock(self._real)
        self.ballast = Ballast(self._real)
        self._owner = os.getpid()
        self._identity: tuple[int, int] | None = None
        self._opened: Opened | None = None
        self._is_suspect = False
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading = ThreadLock()

    def open(self) -> Opened:
        self._lock.take()
        try:
            with self.errors():
                create(self._real)
                self._identity = identity(self._real)
                try:
                    self._opened = self._enter()
                except sqlite3.Error as exc:  # the first write is small
                    self._disconnect()
                    if not is_about_room(exc) or not self.ballast.give_up(exc):
                        raise
                    self._opened = self._enter()
        except BaseException:
            self._disconnect()
            self._lock.release()
            raise
        self.ballast.put()
        return self._opened

    def preflight(self) -> None:
        """Raise the errors of `open` that show without the lock. Makes nothing."""
        self._lock.check()
        if identity(self._real) is None:
            return
        check_writable(self._real)
        try:
            with closing(connect_reader(self._real)) as visitor:
                version_of(visitor, self._path)
        except sqlite3.Error as exc:
            raise translate(self._path, exc) from exc

    def close(self) -> None:
        """Leave one file without a log, marked as clean. Errors are logged."""
        if os.getpid() != self._owner:
            return  # the connections belong to the parent process of this fork
        if self._opened is not None:  # else the ballast is another node's
            self.ballast.remove()
        try:
            if self._writer is not None and not self._is_suspect:
                with self.errors():
                    with self.transaction() as writer:
                        writer.execute("UPDATE meta SET clean = 1")
                    self.checkpoint()
        except StoreError as exc:
            logger.warning("%s could not be closed properly, and is checked at the next start: %s", self._path, exc)
        self._disconnect()
        self._lock.release()
        self._opened = None

    def writer(self) -> sqlite3.Connection:
        self._check()
        if self._writer is None:
            self._writer = self._connect()
        return self._writer

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Write only in the database that was opened."""
        writer = self.writer()
        with _immediate(writer):
            self._check_epoch(writer)
            yield writer

    def checkpoint(self, how: Literal["TRUNCATE", "PASSIVE"] = "TRUNCATE") -> None:
        """TRUNCATE waits for readers and empties the log."""
        with suppress(sqlite3.Error):
            self.writer().execute(f"PRAGMA wal_checkpoint({how})")

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to one thread at a time; temporary unless the store is open."""
        if self._opened is not None:
            self._check()  # before the lock, which another thread may have held when the process was forked
        with self._reading:
            try:
                if self._opened is None:
                    with closing(self._visit()) as visitor:
                        yield visitor
                    return
                if self._reader is None:
                    self._reader = connect_reader(self._real)
                yield self._reader
            except sqlite3.Error as exc:
                self._close_reader()
                raise translate(self._path, exc) from exc

    @contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        self._check()
        reader = connect_reader(self._real)
        try:
            reader.execute("BEGIN")
            yield reader
        finally:
            reader.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            error = translate(self._path, exc)
            is_ours = isinstance(error, StoreUnusable) and not isinstance(error, Unstorable)
            self._is_suspect = self._is_suspect or is_ours
            if not is_usable_after(exc):
                self._disconnect()
            raise error from exc
        except OverflowError as exc:
            msg = f"{self._path} cannot hold a whole number of more than 64 bits; please report this"
            raise Unstorable(msg) from exc

    def _connect(self) -> sqlite3.Connection:
        check_writable(self._real)
        return connect(self._real, self._durability)

    def _visit(self) -> sqlite3.Connection:
        """Connect without the lock. Makes and migrates nothing."""
        if identity(self._real) is None:
            msg = f"there is no database {self._path}: look at the path, or start the program that makes it"
            raise StoreUnusable(msg)
        check_writable(self._real)
        visitor = connect_reader(self._real)
        try:
            check_current(visitor, self._path)
        except BaseException:
            visitor.close()
            raise
        return visitor

    def _enter(self) -> Opened:
        self._writer = writer = self._connect()
        version = version_of(writer, self._path)
        if version:
            self._check_pages(writer)
        use_log(writer, self._path)
        with _immediate(writer):
            migrate(writer, version_of(writer, self._path))
            writer.execute("UPDATE meta SET epoch = epoch + 1, clean = 0")
            writer.execute("DELETE FROM change")
            ((epoch, instance),) = fetch(writer, "SELECT epoch, instance FROM meta")
        return Opened(epoch, instance)

    def _check_pages(self, writer: sqlite3.Connection) -> None:
        if fetch(writer, "SELECT clean FROM meta") == [(1,)]:
            return
        ((answer,),) = fetch(writer, "PRAGMA quick_check(1)")
        if answer != "ok":
            msg = (
                f"{self._path} is corrupt: {answer}: restore a backup, or save what can be with the sqlite3 shell's "
                ".recover, and move the file away"
            )
            raise StoreUnusable(msg)

    def _check(self) -> None:
        if self._opened is None:
            msg = f"{self._path} is not open: call open first"
            raise StoreUnusable(msg)
        if os.getpid() != self._owner:
            msg = f"{self._path} was opened by process {self._owner}, and this is a fork of it: open it here"
            raise StoreForked(msg)
        if identity(self._real) != self._identity:
            raise StoreUnusable(self._replaced())

    def _check_epoch(self, writer: sqlite3.Connection) -> None:
        found = [Opened(*row) for row in fetch(writer, "SELECT epoch, instance FROM meta")]
        if found == [self._opened]:
            return
        ours = self._opened
        if ours and found and found[0].instance == ours.instance and found[0].epoch > ours.epoch:
            msg = f"{self._path}: another process has opened it since, though it is locked: leave the lock's file alone"
            raise StoreTakenOver(msg)
        raise StoreUnusable(self._replaced())

    def _replaced(self) -> str:
        return f"{self._path} has been replaced or removed: put back the file that was there, or restart the program"

    def _disconnect(self) -> None:
        with self._reading:
            self._close_reader()
        if self._writer is not None:
            with suppress(sqlite3.Error):
                self._writer.close()
            self._writer = None

    def _close_reader(self) -> None:
        if self._reader is not None:
            with suppress(sqlite3.Error):
                self._reader.close()
            self._reader = None


@contextmanager
def _immediate(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:  # a full disk has ended it already
                connection.execute("ROLLBACK")
        raise
