"""The log of changes, as far as we have been told of it: which rows others have changed, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Final

from attrs import frozen

from ..._rows import Changes, StoredPause, StoredRequest
from ..connection import Connection, one_row
from ..statements import Statements
from ..table import Row, loaded, text_array
from .news import NewsStatements, life_of

PAGE: Final = 1_000
"""Changes that are read at once. With their rows that takes some hundredths of a second."""


ReadRequests = Callable[[Connection], tuple[StoredRequest, ...]]


@frozen
class _Pages:
    """Where the reading of a long log stands. `seen`: what was seen before; `upto`: what will be after the last page;
    `xid`, `number`: the last change so far.
    """

    seen: str
    upto: str = ""
    xid: int = 0
    number: int = 0


class ChangeLog:
    """The log of changes, and how much of it we have been told of. `read_requests`: of a store that others share."""

    def __init__(self, statements: Statements, read_requests: ReadRequests | None) -> None:
        self.statements = NewsStatements(statements, shared=read_requests is not None)
        self._read_requests = read_requests
        self._seen = ""
        self._pages: _Pages | None = None
        self._lock = Lock()

    @property
    def seen(self) -> str:
        """The snapshot and the life of the server up to which we have been told of all; empty: of nothing yet."""
        return self._seen

    def now(self, connection: Connection) -> str:
        """Return what has been seen, once all that is there in this transaction has been read."""
        return str(one_row(connection.execute(self.statements.now))[0])

    def begin(self, seen: str) -> None:
        """Take note that all rows are known as they were then."""
        with self._lock:
            self._seen, self._pages = seen, None

    def see(self, snapshot: str, after: str) -> None:
        """Take note that between these two others have changed nothing."""
        with self._lock:
            if self._seen == after:
                self._seen = snapshot

    def read(self, connection: Connection, agent: str) -> Changes:
        """Read the next page of what others have changed, in one snapshot."""
        pages = self._pages or _Pages(self._seen)
        asked = {"seen": pages.seen, "agent": agent, "upto": pages.upto, "xid": str(pages.xid), "number": pages.number}
        with connection.pipeline():
            look = connection.execute(self.statements.look, asked)
            page = connection.execute(self.statements.page, asked | {"most": PAGE})
        now, is_behind, *is_asked = one_row(look)
        if is_behind:
            self._go_on(pages, None)
            return Changes(is_behind=True)
        if pages.upto and life_of(now) != life_of(pages.upto):
            self._go_on(pages, None)
            return Changes(is_more=True)
        rows = page.fetchall()
        upto, is_more = pages.upto or now, len(rows) == PAGE
        requests = self._read_requests(connection) if self._read_requests and is_asked == [True] else ()
        if requests and (is_more or pages.upto):  # whoever asks may have changed the job before: it is on a later page
            asked_for = {"ids": text_array({request.job_id for request in requests})}
            rows += connection.execute(self.statements.rows, asked_for).fetchall()
        last = max(((xid, number) for _, _, xid, number, *_ in rows), default=(0, 0))
        self._go_on(pages, _Pages(pages.seen, upto, *last) if is_more else None, upto)
        return self._changes(rows, requests, is_more=is_more)

    def reread(self, connection: Connection, jobs: Iterable[str]) -> Changes:
        """Read the rows of these jobs as they are now."""
        return self._changes(connection.execute(self.statements.rows, {"ids": text_array(jobs)}).fetchall())

    def _go_on(self, pages: _Pages, then: _Pages | None, seen: str = "") -> None:
        """Go on with the next page, or else begin anew with what has been seen; unless rows were read meanwhile."""
        with self._lock:
            if self._seen == pages.seen:
                self._pages = then
                if then is None and seen:
                    self._seen = seen

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
