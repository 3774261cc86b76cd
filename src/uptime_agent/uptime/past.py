"""The past of a target: stretches with one status each.

A check is valid until the next. If that is late, the status in between is unknown, and counts for nothing.

In "1763852400.0u 3600.0d 60.0u @1763860000.0+45" are the first start, the seconds to the next starts, the last check,
and its validity.
"""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from ..checks import Status

MAX_PAST_S: Final = 40 * 86_400.0
"""Seconds."""

MAX_STRETCHES: Final = 40
"""A target that changes more often has a shorter past."""

LARGEST: Final = 10**12

LETTERS: Final = {Status.UP: "u", Status.DEGRADED: "g", Status.DOWN: "d", Status.UNKNOWN: "x"}
_STATUSES: Final = {letter: status for status, letter in LETTERS.items()}


@frozen
class Span:
    """A stretch from `start` (UTC seconds) to the next."""

    start: float
    status: Status


@frozen
class Past:
    """Stretches. `seen`: the last check's end. `until`: its validity without another."""

    spans: tuple[Span, ...]
    seen: float
    until: float
    _text: str = field(init=False, eq=False, repr=False)

    @_text.default
    def _written(self) -> str:
        words, before = [], 0.0
        for span in self.spans:
            words.append(f"{span.start - before:.1f}{LETTERS[span.status]}")
            before = span.start
        return " ".join(words)

    def __str__(self) -> str:
        return f"{self._text} @{self.seen:.1f}+{self.until - self.seen:.0f}"


def past_after(past: Past | None, status: Status, now: float, holds: float) -> Past:
    """Add a check that ended at `now` and is valid for `holds` seconds."""
    now = round(now, 1)
    until = now + round(min(holds, MAX_PAST_S))
    if past is None or now < past.seen:  # the clock was set back, so older stretches mean nothing
        return Past((Span(now, status),), now, until)
    spans = past.spans
    if now > past.until and spans[-1].status is not Status.UNKNOWN:
        spans = (*spans, Span(past.seen, Status.UNKNOWN))
    if spans[-1].status is not status:
        spans = (*spans, Span(now, status))
    return Past(_kept(spans, now), now, until)


def _kept(spans: tuple[Span, ...], now: float) -> tuple[Span, ...]:
    first = max(len(spans) - MAX_STRETCHES, 0)
    while first + 1 < len(spans) and spans[first + 1].start < now - MAX_PAST_S:
        first += 1
    return spans[first:] if first else spans


def parse_past(text: str) -> Past:
    """Read a past. Raises ValueError for other texts."""
    if not isinstance(text, str) or len(text) > MAX_STRETCHES * 20:
        raise ValueError
    *words, last = text.split(" ")
    spans: list[Span] = []
    at = 0.0
    for word in words[-MAX_STRETCHES:]:
        at = round(at + _number(word[:-1]), 1)
        spans.append(Span(at, _status(word[-1:])))
    seen, _, holds = last.removeprefix("@").partition("+")
    if not spans or not last.startswith("@"):
        raise ValueError
    return Past(tuple(spans), _number(seen), _number(seen) + _number(holds))


def _number(text: str) -> float:
    if not 0 <= (found := float(text)) <= LARGEST:
        raise ValueError
    return found


def _status(letter: str) -> Status:
    found = _STATUSES.get(letter)
    if found is None:
        raise ValueError
    return found
