"""Spans of OpenTelemetry. Needs the extra `otel`, which is the API alone: your program brings the SDK.

OpenTelemetry has no convention for jobs, so the names are our own: `timerqueue.*`. A span is made when what it tells is
over, with the instants of the scheduler's events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from zlib import crc32

try:
    from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, get_tracer
except ImportError as error:
    msg = f"scheduler.otel needs opentelemetry-api, which cannot be imported ({error}): "
    msg += "pip install timerqueue[otel]"
    raise ModuleNotFoundError(msg, name="opentelemetry") from error

from ._values import (
    AgentLost,
    ClockJumped,
    Event,
    InvalidJob,
    Outcome,
    RunEnded,
    StoreDown,
    StoreUp,
)

__all__ = ["Spans"]

Attributes = Mapping[str, str | bool | int | float]

_OF_ALL: Final = 1 << 32


class Spans:
    """A listener that makes spans: `s.listen(Spans())`.

    `runs`: the share of ticks whose runs have a span, from 0 (none, the default) to 1. All attempts of a tick have
    spans, or none has; all nodes choose the same ticks. `failures`: whether each run that does not succeed has one too.
    Each outage of the store has a span. A jump of the clock, and a node that is lost, are spans without length.
    `tracer` None: the one called "timerqueue" of the global provider.

    A listener costs each run some microseconds, which plain runs do not pay otherwise. Raises InvalidJob if `runs` is
    not a number from 0 to 1.
    """

    def __init__(self, *, runs: float = 0.0, failures: bool = True, tracer: Tracer | None = None) -> None:
        if isinstance(runs, bool) or not isinstance(runs, (int, float)) or not 0 <= runs <= 1:
            msg = f"runs must be a share from 0 to 1, such as 0.01, not {runs!r}"
            raise InvalidJob(msg)
        self._below = int(runs * _OF_ALL)
        self._failures = failures
        self._tracer = get_tracer("timerqueue") if tracer is None else tracer
        self._down: StoreDown | None = None
        self._on: dict[type[Any], Callable[[Any], None]] = {
            RunEnded: self._run,
            StoreDown: self._store_down,
            StoreUp: self._store_up,
            ClockJumped: self._clock,
            AgentLost: self._lost,
        }

    def __call__(self, event: Event) -> None:
        """Take an event of the scheduler. Events without a span do nothing."""
        tell = self._on.get(type(event))
        if tell is not None:
            tell(event)

    def _run(self, run: RunEnded) -> None:
        has_failed = run.outcome not in (Outcome.SUCCEEDED, Outcome.CANCELLED)
        if not (self._is_chosen(run) or (has_failed and self._failures)):
            return
        about: dict[str, str | bool | int | float] = {
            "timerqueue.job.id": run.job_id,
            "timerqueue.run.due": run.due.isoformat(),
            "timerqueue.run.attempt": run.attempt,
            "timerqueue.run.outcome": run.outcome.value,
            "timerqueue.run.lateness": run.lateness,
        }
        if run.retry_at is not None:
            about["timerqueue.run.retry_at"] = run.retry_at.isoformat()
        self._span("run", run.started, run.ended, about, run.error if has_failed else None, is_error=has_failed)

    def _is_chosen(self, run: RunEnded) -> bool:
        name = f"{run.job_id}\0{run.due.isoformat()}".encode("utf-8", "surrogatepass")
        return crc32(name) < self._below

    def _store_down(self, event: StoreDown) -> None:
        self._down = self._down or event

    def _store_up(self, event: StoreUp) -> None:
        down, self._down = self._down, None
        if down is not None:
            self._span("store outage", down.at, event.at, {}, down.error, is_error=True)

    def _clock(self, event: ClockJumped) -> None:
        self._span("clock jump", event.at, event.at, {"timerqueue.clock.seconds": event.seconds})

    def _lost(self, event: AgentLost) -> None:
        about: Attributes = {"timerqueue.node": event.agent, "timerqueue.node.is_us": event.is_us}
        self._span("node lost", event.at, event.at, about, event.reason, is_error=event.is_us)

    def _span(
        self,
        name: str,
        began: datetime,
        ended: datetime,
        about: Attributes,
        error: str | None = None,
        *,
        is_error: bool = False,
    ) -> None:
        """Make one span. Ends before it begins if the clock was set back: then it has no length."""
        start = _nanoseconds(began)
        span = self._tracer.start_span(
            f"timerqueue {name}", kind=SpanKind.INTERNAL, attributes=dict(about), start_time=start
        )
        if is_error:
            span.set_status(Status(StatusCode.ERROR, error))
        elif error is not None:
            span.set_attribute("timerqueue.reason", error)
        span.end(max(start, _nanoseconds(ended)))


def _nanoseconds(at: datetime) -> int:
    """Return nanoseconds since 1970, exact to the microsecond."""
    whole = int(at.replace(microsecond=0).timestamp())
    return whole * 1_000_000_000 + at.microsecond * 1_000
