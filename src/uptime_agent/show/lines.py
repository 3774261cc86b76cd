"""Events, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from scheduler import RunMissed

from ..checks import CheckResult, Status
from ..standing import Summary, TargetStatus, Verdict
from ..text import our_version, wording
from .display import Screen
from .notices import LeftOutWords

Now = Callable[[], float]


class _Lines:
    refresh_every = None

    def __init__(self, stream: TextIO, now: Now) -> None:
        self._stream = stream
        self._now = now

    def refresh(self) -> None: ...

    def _write(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class PlainLines(_Lines):
    """Lines for people."""

    def __init__(self, stream: TextIO, now: Now) -> None:
        super().__init__(stream, now)
        self._left_out = LeftOutWords()

    def started(self, view: Screen) -> None:
        """See `Display`."""
        checked = wording.count(len(view.targets), "target")
        kept = "" if view.store is None else f", keeps history in {view.store}"
        self._say(wording.printable(f"timerqueue {our_version()} checks {checked}{kept}; Ctrl-C stops it"))

    def remembered(self, target: TargetStatus) -> None:
        """See `Display`."""
        self._say("  ".join((f"{'REMEMBERED':<16}", wording.printable(target.name), remembered_text(target))))

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """See `Display`."""
        verdict, run = target.last, target.last_run
        assert verdict is not None
        assert run is not None
        state = _arrow(target.previous, verdict.status) if is_change else verdict.status.name
        acts = target.acts(target.name).text
        more = f"{_more(verdict, target.max_attempts)}{f' ({acts})' if acts else ''}"
        parts = [f"{state:<16}", wording.printable(target.name), f"{found_text(verdict)}{more}"]
        self._say("  ".join((*parts, f"started {wording.latency(run.lateness)} late")), run.ended.timestamp())

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """See `Display`."""
        if (words := self._left_out.of(target.name, event)) is not None:
            self._say("  ".join((f"{'MISSED':<16}", *words)))

    def notice(self, text: str) -> None:
        """See `Display`."""
        self._say(f"{'NOTICE':<16}  {wording.printable(text)}")

    def stopped(self, summary: Summary) -> None:
        """See `Display`."""
        self._say(summary_text(summary))

    def _say(self, text: str, at: float | None = None) -> None:
        self._write(f"{wording.stamp(self._now() if at is None else at)}  {text}")


class JsonLines(_Lines):
    """JSON objects. "event" is started, remembered, check, missed, notice or stopped.

    Times are in milliseconds, instants in ISO 8601.
    """

    def started(self, view: Screen) -> None:
        """See `Display`."""
        self._tell("started", self._now(), version=our_version(), targets=len(view.targets), store=view.store)

    def remembered(self, target: TargetStatus) -> None:
        """See `Display`."""
        verdict, run = target.last, target.last_run
        assert verdict is not None
        assert run is not None
        assert target.status is not None
        assert target.since is not None
        self._tell(
            "remembered",
            self._now(),
            name=target.name,
            type=target.kind,
            url=target.url,
            status=target.status.value,
            since=wording.stamp(target.since),
            checked=wording.stamp(run.ended.timestamp()),
            latency_ms=milliseconds(verdict.latency),
            error=verdict.error,
            checks=target.checks,
        )

    def checked(self, target: TargetStatus, *, is_change: bool) -> None:
        """See `Display`."""
        verdict, run = target.last, target.last_run
        assert verdict is not None
        assert run is not None
        self._tell(
            "check",
            run.ended.timestamp(),
            name=target.name,
            type=target.kind,
            url=target.url,
            status=verdict.status.value,
            previous=target.previous.value if target.previous else None,
            changed=is_change,
            since=None if target.since is None else wording.stamp(target.since),
            latency_ms=milliseconds(verdict.latency),
            error=verdict.error,
            due=wording.stamp(run.due.timestamp()),
            lateness_ms=milliseconds(run.lateness),
            attempt=verdict.attempt,
            max_attempts=target.max_attempts,
            is_final=verdict.is_final,
            cause=verdict.cause,
            verified=target.is_verified,
            results=[result_values(each) for each in verdict.results],
            **({"acts": acts} if (acts := [each.shown() for each in target.acts(target.name)]) else {}),
        )

    def missed(self, target: TargetStatus, event: RunMissed) -> None:
        """See `Display`."""
        least = {} if event.is_exact else {"is_exact": False}
        self._tell("missed", self._now(), name=target.name, count=event.count, reason=event.reason.key, **least)

    def notice(self, text: str) -> None:
        """See `Display`."""
        self._tell("notice", self._now(), text=text)

    def stopped(self, summary: Summary) -> None:
        """See `Display`."""
        self._tell(
            "stopped",
            self._now(),
            seconds=round(summary.seconds, 3),
            checks=summary.checks,
            targets={status.value if status else "unchecked": count for status, count in summary.targets.items()},
            missed=summary.missed,
            **({} if summary.missed_is_exact else {"missed_is_exact": False}),
            lateness_max_ms=milliseconds(summary.lateness_max),
            cut_off=summary.cut_off,
        )

    def _tell(self, event: str, at: float, **values: Any) -> None:
        self._write(json.dumps({"event": event, "at": wording.stamp(at), **values}))


def summary_text(summary: Summary) -> str:
    """Write the summary."""
    states = [f"{number:,} {_state(status)}" for status, number in _in_order(summary.targets) if number]
    missed = wording.least(summary.missed, is_exact=summary.missed_is_exact)
    parts = [
        f"stopped after {wording.span(summary.seconds)}: {wording.count(summary.checks, 'check')}",
        f"targets: {', '.join(states) or 'none'}",
        f"started at most {wording.latency(summary.lateness_max)} late, {missed} missed",
    ]
    if summary.cut_off:
        parts.append(f"{wording.count(summary.cut_off, 'check')} cut off")
    return "; ".join(parts)


def change_text(target: TargetStatus) -> str:
    """Write the new status and why."""
    assert target.last is not None
    reason = f": {target.last.error}" if target.last.error else ""
    return f"{target.name} {_arrow(target.previous, target.last.status)}{reason}"


def remembered_text(target: TargetStatus) -> str:
    """Write the last known status."""
    assert target.last is not None
    assert target.last_run is not None
    assert target.status is not None
    assert target.since is not None
    since, checked = wording.stamp(target.since), wording.stamp(target.last_run.ended.timestamp())
    return f"{target.status.name} since {since}, last checked {checked}: {found_text(target.last)}"


def result_text(result: CheckResult) -> str:
    """Write one address's error or HTTP status."""
    if result.error is not None:
        return result.error
    status = result.detail.get("http_status")
    return "ok" if status is None else f"status {status}"


def found_text(verdict: Verdict) -> str:
    """Write a finding and its time."""
    if not verdict.results:
        return f"{verdict.error or verdict.status.value}{_in(verdict.latency, verdict.error)}"
    if len(verdict.results) != 1:
        each = ", ".join(f"{result.address} {result.status.name}" for result in verdict.results)
        return f"{verdict.error or each}{_in(verdict.latency, verdict.error)}"
    (result,) = verdict.results
    measured = f" ({wording.phases(result.phases)} ms)" if result.phases else ""
    return f"{verdict.error or result_text(result)}{_in(result.latency, verdict.error or result.error)}{measured}"


def _more(verdict: Verdict, attempts: int) -> str:
    if verdict.is_final:
        return ""
    if verdict.asks:
        have = "has" if len(verdict.asks) == 1 else "have"
        return f" (once more when {' and '.join(map(wording.printable, verdict.asks))} {have} been checked)"
    return f" (attempt {verdict.attempt} of {attempts}, another follows)"


def _in(latency: float | None, error: str | None) -> str:
    if latency is None:
        return ""
    return f" in {wording.latency(latency)}" if error is None else f", after {wording.latency(latency)}"


def _arrow(before: Status | None, after: Status) -> str:
    return f"{before.name if before else ''} -> {after.name}".strip()


def _state(status: Status | None) -> str:
    return status.value if status else "not checked yet"


def _in_order(counts: Mapping[Status | None, int]) -> list[tuple[Status | None, int]]:
    return [(status, counts.get(status, 0)) for status in (*Status, None)]


def milliseconds(seconds: float | None) -> float | None:
    """Convert seconds, to the microsecond."""
    return None if seconds is None else round(seconds * 1e3, 3)


def result_values(result: CheckResult) -> dict[str, Any]:
    """Return an address's answer as JSON."""
    return {
        "address": result.address,
        "status": result.status.value,
        "latency_ms": milliseconds(result.latency),
        "phases_ms": {name: milliseconds(seconds) for name, seconds in result.phases.items()},
        "error": result.error,
        "detail": dict(result.detail),
        "attempt": result.attempt,
    }
