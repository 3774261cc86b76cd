"""Requests: one probe that is to be run on one database now, and what became of it."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, frozen

from ..contract import Failure, OutcomeKind, Probe, Rows


@frozen(kw_only=True)
class Result:
    """The end of a request. `waited` for a connection, `executed`: seconds of our time; `cost`: of the server's.

    STORED means here: all rows are there. `is_unproven`: no test of ours has run the probe on such a server.
    """

    kind: OutcomeKind
    failure: Failure | None = None
    reason: str | None = None
    rows: Rows = ()
    left_out: int = 0
    waited: float = 0.0
    executed: float = 0.0
    cost: float = 0.0
    is_unproven: bool = False


def failed(failure: Failure, reason: str) -> Result:
    """Return the result of what was tried in vain."""
    return Result(kind=OutcomeKind.FAILED, failure=failure, reason=reason)


def skipped(reason: str) -> Result:
    """Return the result of what was not tried. The reason begins with one word, then ": " and more of them."""
    return Result(kind=OutcomeKind.SKIPPED, reason=reason)


@define(eq=False)
class Request:
    """A probe to be run on a database (None: the one where probes of the whole server run).

    `asked`, `wait_until`: monotonic seconds. `on_end` is called once, with the request, when its result is there.
    """

    probe: Probe
    database: str | None
    asked: float
    wait_until: float
    on_end: Callable[[Request], None]
    result: Result | None = None
    begun: float | None = None
    tries: int = 0
    spent: float = 0.0
    """Seconds of work in earlier tries."""

    @property
    def is_open(self) -> bool:
        """Whether somebody still waits for a result."""
        return self.result is None

    @property
    def left(self) -> float:
        """Seconds that it may still work: the wait for a connection is not in them."""
        return max(self.probe.timeout - self.spent, 0.001)

    def begin(self, now: float) -> None:
        """Take note that its work begins."""
        self.begun = now

    def put_back(self, now: float) -> None:
        """Take note that it has to be tried again. What it has worked is spent."""
        self.tries += 1
        self.spent += 0.0 if self.begun is None else now - self.begun
        self.begun = None

    def end(self, result: Result) -> None:
        """Give it its result, unless it has one."""
        if self.result is None:
            self.result = result
            self.on_end(self)
