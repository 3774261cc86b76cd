"""Metrics of limits, of the timer heap and of the event loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Final

from timerqueue import LimitStatistics, QueueStatistics

from ._bounds import MOST_LIMITS, labels_of
from ._metric import Labelled, Metric, Reader, counter, gauge, one
from ._snapshot import Snapshot


def _sum_of(read: Callable[[LimitStatistics], float]) -> Reader:
    """Return the reader of a figure that the members of a family have together."""

    def reader(snapshot: Snapshot) -> Iterator[Labelled]:
        limits, sums = snapshot.statistics.limits, defaultdict[str, float](float)
        labels = labels_of({name: limit.family or name for name, limit in limits.items()}, MOST_LIMITS)
        for name, limit in limits.items():
            sums[labels[name]] += read(limit)
        for label, value in sums.items():
            yield (label,), value

    return reader


def _of_timers(read: Callable[[QueueStatistics], float]) -> Reader:
    return one(lambda it: None if it.statistics.timers is None else read(it.statistics.timers))


LIMIT_METRICS: Final[tuple[Metric, ...]] = (
    gauge(
        "limit_units",
        "Units of a limit; of a family, those of all members that are in use.",
        _sum_of(lambda it: it.size),
        "limit",
    ),
    gauge("limit_units_used", "Units in use.", _sum_of(lambda it: it.used), "limit"),
    gauge("limit_waiting", "Work that waits for units of this limit.", _sum_of(lambda it: it.waiting), "limit"),
    gauge(
        "limit_members",
        "Limits under this label: the members of a family in use, or 1.",
        _sum_of(lambda _: 1),
        "limit",
    ),
    gauge("timers", "Timers in the heap, which holds all waits of the scheduler.", _of_timers(lambda it: it.waiting)),
    counter("timers_fired", "Timers that have fired.", _of_timers(lambda it: it.fired)),
    counter("wake_ups", "Wake-ups of the loop of timers.", _of_timers(lambda it: it.wake_ups)),
    gauge(
        "timer_lateness_max_seconds",
        "The longest time from due to fired, of all timers since the begin.",
        _of_timers(lambda it: it.lateness_max),
    ),
    counter("loop_stalls", "How often the event loop stood still.", one(lambda it: it.statistics.stalls)),
)
