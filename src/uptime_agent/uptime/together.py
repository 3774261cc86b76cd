"""The past of several targets as one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..checks import Status
from .past import Past, Span


def together(pasts: Sequence[Past | None], at_least: int | None, now: float) -> Past | None:
    """Return a group's past until `now` (UTC seconds): down while `at_least` members are; None: all.

    It is unknown while unknown members might decide.
    """
    least = len(pasts) if at_least is None else at_least
    changes = sorted((change for past in pasts if past is not None for change in _changes(past, now)), key=_instant)
    known = [Status.UNKNOWN] * len(pasts)
    places = {id(past): place for place, past in enumerate(pasts)}
    spans: list[Span] = []
    for number, (at, status, past) in enumerate(changes):
        known[places[id(past)]] = status
        is_last = number + 1 == len(changes) or changes[number + 1][0] > at
        stands = _stands(known, least)
        if is_last and (not spans or spans[-1].status is not stands):
            spans.append(Span(at, stands))
    return Past(tuple(spans), now, now) if spans else None


def _changes(past: Past, now: float) -> Iterator[tuple[float, Status, Past]]:
    for span in past.spans:
        yield span.start, span.status, past
    end = math.inf if now <= past.until else past.seen
    if end < now:
        yield end, Status.UNKNOWN, past


def _instant(change: tuple[float, Status, Past]) -> float:
    return change[0]


def _stands(known: Sequence[Status], least: int) -> Status:
    down, unknown = known.count(Status.DOWN), known.count(Status.UNKNOWN)
    if down >= least:
        return Status.DOWN
    return Status.UNKNOWN if down + unknown >= least else Status.UP
