"""One probe to run now, and its result."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, frozen

from ..contract import Failure, OutcomeKind, Probe, Rows


@frozen(kw_only=True)
class Result:
    """A request's end. In seconds: `waited`, `executed`; `cost` of the server's time.

    STORED: all rows are there. `is_unproven`: our tests have no such server.
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
    """Return a failed try's result."""
    return Result(kind=OutcomeKind.FAILED, failure=failure, reason=reason)


def skipped(reason: str) -> Result:
    """An untried request's result. The reason: a word, ": ", details."""
    return Result(kind=OutcomeKind.SKIPPED, reason=reason)


@define(eq=False)
class ProbeRequest:
    """A probe on a database; None: the server's own.

    `asked`, `wait_until`: monotonic seconds. `on_end` is called once.
    """

    probe: Probe
    database: str | None
    asked: float
    wait_until: float
    on_end: Callable[[ProbeRequest], None]
    result: Result | None = None
    begun: float | None = None
    tries: int = 0
    spent: float = 0.0
    """Seconds of earlier tries."""

    @property
    def is_open(self) -> bool:
        """Whether its result is awaited."""
        return self.result is None

    @property
    def left(self) -> float:
        """Seconds of work left, besides waits."""
        return max(self.probe.timeout - self.spent, 0.001)

    def begin(self, now: float) -> None:
        """Note that its work begins."""
        self.begun = now

    def put_back(self, now: float) -> None:
        """Retry it. Its work is spent."""
        self.tries += 1
        self.spent += 0.0 if self.begun is None else now - self.begun
        self.begun = None

    def end(self, result: Result) -> None:
        """Set its result, once."""
        if self.result is None:
            self.result = result
            self.on_end(self)
