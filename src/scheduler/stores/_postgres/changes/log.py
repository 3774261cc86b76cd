"""The log of changes, read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from attrs import frozen

from ..._rows import Changes, StoredPause, StoredRequest
from ..connection import Asked, Cursor, StoreConnection, one_row
from ..statements import Statements
from ..table import Row, loaded, text_array
from .news import NewsStatements, life_of

PAGE: Final = 1_000
"""Changes: some hundredths of a second."""


ReadRequests = Callable[[StoreConnection], tuple[StoredRequest, ...]]


@frozen
class Told:
    """How far we have read the log.

    `seen`: up to this snapshot and life of the server, if any. Between pages, `upto`: `seen` after the last page;
    `xid`, `number`: the last change.
    """

    seen: str = ""
    upto: str = ""
    xid: int = 0
    number: int = 0


class ChangeLog:
    """`read_requests`: in a shared store.

    Take `told` before a transaction and call `tell` after it: only then a page counts.
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
        return self._told.seen

    def now(self, connection: StoreConnection) -> str:
        return str(one_row(connection.execute(self.statements.now))[0])

    def begin(self, seen: str) -> None:
        """Later reads are at least as new."""
        with self._lock:
            self._told = Told(seen)

    def see(self, snapshot: str, after: str) -> None:
        self.tell(Told(after), Told(snapshot))

    def tell(self, before: Told, told: Told) -> None:
        """Advance, unless another thread has read more."""
        with self._lock:
            if self._told == before:
                self._told = told

    def asks(self, agent: str, told: Told) -> tuple[Asked, Asked]:
        asked = {"seen": told.seen, "agent": agent, "upto": told.upto, "xid": str(told.xid), "number": told.number}
        return (self.statements.look, asked), (self.statements.page, asked | {"most": PAGE})

    def read(self, connection: StoreConnection, look: Cursor, page: Cursor, told: Told) -> tuple[Changes, Told]:
        """Read the answers to `asks`. Return the changes and the new `told`."""
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

    def reread(self, connection: StoreConnection, jobs: Iterable[str]) -> Changes:
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
