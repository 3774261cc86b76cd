"""Uptime of a target over several windows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ..standing import TargetStatus, restore, verdict_of_record
from ..text import wording
from ..uptime import WINDOWS, Latency, Past, Uptime, latency_over, together, uptime_over
from .lines import milliseconds

if TYPE_CHECKING:
    from scheduler import Record

MIN_KNOWN: Final = 0.1
"""Least known share of a window for its uptime."""

Line = Callable[[str, str, Uptime, Latency], str]


def uptime_lines(name: str, records: Sequence[Record], now: float, line: Line) -> Iterator[str]:
    """Yield a line per window up to `now`. `records`: latest first."""
    answers = list(_answers(records))
    yield from _over_windows(name, _past_of(name, records), answers, now, line)


def group_uptime_lines(
    name: str, members: Mapping[str, Sequence[Record]], at_least: int | None, now: float, line: Line
) -> Iterator[str]:
    """Yield lines about a group. `at_least`: see `together`. A group has no latency."""
    pasts = [_past_of(member, records) for member, records in members.items()]
    yield from _over_windows(name, together(pasts, at_least, now), [], now, line)


def _over_windows(
    name: str, past: Past | None, answers: Sequence[tuple[float, float]], now: float, line: Line
) -> Iterator[str]:
    for window, seconds in WINDOWS.items():
        yield line(name, window, uptime_over(past, now, seconds), latency_over(answers, now, seconds))


def _past_of(name: str, records: Sequence[Record]) -> Past | None:
    target = TargetStatus(name, "", "")
    restore(target, records)
    return target.past


def _answers(records: Sequence[Record]) -> Iterator[tuple[float, float]]:
    for record in records:
        verdict = verdict_of_record(record)
        if verdict is not None and verdict.latency is not None and verdict.is_up and record.ended is not None:
            yield record.ended.timestamp(), verdict.latency


def plain_uptime(name: str, window: str, uptime: Uptime, latency: Latency) -> str:
    """Write a window's uptime and latency."""
    known = f"{_percent(uptime.known)} of it known"
    parts = [wording.printable(name), f"last {window:<5}", f"{_in_words(uptime):<16}", known]
    if latency.percentiles:
        found = ", ".join(f"{each} {wording.latency(seconds)}" for each, seconds in latency.percentiles.items())
        parts.append(f"latency {found} ({_percent(latency.known)} of it known)")
    return "  ".join(parts)


def _in_words(uptime: Uptime) -> str:
    """A tiny share would be taken for the whole."""
    if uptime.up is None:
        return "not known"
    return f"{_percent(uptime.up)} up" if uptime.known >= MIN_KNOWN else "not enough known"


def json_uptime(name: str, window: str, uptime: Uptime, latency: Latency) -> str:
    """Write a window as JSON, with shares from 0 to 1."""
    return json.dumps(
        {
            "name": name,
            "window": window,
            "uptime": uptime.up,
            "known": round(uptime.known, 6),
            "latency_ms": {each: milliseconds(seconds) for each, seconds in latency.percentiles.items()},
            "latency_known": round(latency.known, 6),
        }
    )


def _percent(share: float) -> str:
    """Write per cent, never rounded up to 100."""
    if share >= 1 - 1e-9:
        return "100 %"
    return f"{int(share * 1e5) / 1e3:g} %"
