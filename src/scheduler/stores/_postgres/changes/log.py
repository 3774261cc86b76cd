"""The log of changes by others, and how far we have read it, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from attrs import frozen

from ..._rows import Changes, StoredPause, StoredRequest
from ..connection import Asked, Connection, Cursor, one_row
from ..statements import Statements
from ..table import Row, loaded, text_array
from .news import NewsStatements, life_of

PAGE: Final = 1_000
"""Changes that are read at once. With their rows that takes some hundredths of a second."""


ReadRequests = Callable[[Connection], tuple[StoredRequest, ...]]


@frozen
class Told:
    """How much of the log we have read.

    `seen`: the snapshot and the life of the server up to which all is read; empty: nothing yet. While a long log is
    read in pages, `upto`: what will have been seen after the last page; `xid`, `number`: the last change so far.
    """

    seen: str = ""
    upto: str = ""
    xid: int = 0
    number: int = 0


class ChangeLog:
    """The log of changes, and how much of it we have read. `read_requests`: of a store that others share.

    A reader takes `told` before its transaction, and calls `tell` after it. A renewal may have seen more meanwhile, and
    what is read counts only once its transaction has ended.
    """

    def __init__(self, statements: Statements, read_requests: ReadRequests | None) -> None:
        self.statements = NewsStatements(statements, shared=read_requests is not None)
        self._read_requests = read_requests
        self._told = Told()
        self._lock = Lock()

    @property
    def told(self) -> Told:
        return self._told

    @property
    def seen(self) -> str:
        """The snapshot and the life of the server up to which all is read."""
        return self._told.seen

    def now(self, connection: Connection) -> str:
        """Return what will have been seen once everything in this transaction has been read."""
        return str(one_row(connection.execute(self.statements.now))[0])

    def begin(self, seen: str) -> None:
        """Note that whatever is read from now on is at least as new as this."""
        with self._lock:
            self._told = Told(seen)

    def see(self, snapshot: str, after: str) -> None:
        """Note that others have changed nothing between these two."""
        self.tell(Told(after), Told(snapshot))

    def tell(self, before: Told, told: Told) -> None:
        """Note how much has been read, unless another thread has read more meanwhile."""
        with self._lock:
            if self._told == before:
                self._told = told

    def asks(self, agent: str, told: Told) -> tuple[Asked, Asked]:
        """Return the two statements for the next page of what others have changed."""
        asked = {"seen": told.seen, "agent": agent, "upto": told.upto, "xid": str(told.xid), "number": told.number}
        return (self.statements.look, asked), (self.statements.page, asked | {"most": PAGE})

    def read(self, connection: Connection, look: Cursor, page: Cursor, told: Told) -> tuple[Changes, Told]:
        """Read the answers to both, in the snapshot in which they were asked. Return the changes, and how much is read
        then.
        """
        now, is_behind, *is_asked = one_row(look)
        if is_behind:
            return Changes(is_behind=True), Told(told.seen)
        if told.upto and life_of(now) != life_of(told.upto):
            return Changes(is_more=True), Told(told.seen)
        rows = page.fetchall()
        upto, is_more = told.upto or now, len(rows) == PAGE
        requests = self._read_requests(connection) if self._read_requests and is_asked == [True] else ()
        # the asking node may have changed the job before: that is on a later page
        if requests and (is_more or told.upto):
            asked_for = {"ids": text_array({request.job_id for request in requests})}
            rows += connection.execute(self.statements.rows, asked_for).fetchall()
        last = max(((xid, number) for _, _, xid, number, *_ in rows), default=(0, 0))
        changes = self._changes(rows, requests, is_more=is_more)
        return changes, Told(told.seen, upto, *last) if is_more else Told(upto)

    def reread(self, connection: Connection, jobs: Iterable[str]) -> Changes:
        """Read the rows of these jobs as they are now."""
        return self._changes(connection.execute(self.statements.rows, {"ids": text_array(jobs)}).fetchall())

    def _changes(
        self, rows: Iterable[Row], requests: tuple[StoredRequest, ...] = (), *, is_more: bool = False
    ) -> Changes:
        pauses: dict[str, StoredPause | None] = {}
        jobs: dict[str, tuple[Any, Any]] = {}
        for kind, key, _, _, *row in rows:
            if kind == "pause":
                pauses[key] = None if row[0] is None else StoredPause(*row[: len(StoredPause._fields)])
            else:
                job = tuple(row[len(StoredPause._fields) :])
                jobs[key] = (None, None) if job[0] is None else loaded(job)
        states = {} if self._read_requests is None else {key: state for key, (_, state) in jobs.items() if state}
        return Changes({key: job for key, (job, _) in jobs.items()}, pauses, states, requests, is_more=is_more)
