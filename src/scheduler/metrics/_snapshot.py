"""The figures of a scheduler at one moment. Taking them is quick; rendering them may happen in any thread."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import translate
from typing import Final

from attrs import frozen

from .._jobs import Handle as Job
from .._running import SchedulerState
from .._scheduler import Scheduler
from .._values import JobState, JobStatistics, SchedulerStatistics

MOST_JOBS: Final = 500
"""Jobs that have series of their own, of the jobs that a pattern asks for."""


@frozen
class JobFigures:
    id: str
    statistics: JobStatistics
    next_start: float | None
    """In UTC seconds since 1970."""


@frozen(kw_only=True)
class Snapshot:
    """The figures of a scheduler at one moment.

    `jobs`: those asked for, at most MOST_JOBS. `left_out`: how many more matched, also by an id that UTF-8 cannot hold.
    None: no job was asked for.
    """

    is_running: bool
    statistics: SchedulerStatistics
    states: Mapping[JobState, int]
    jobs: tuple[JobFigures, ...] = ()
    left_out: int | None = None


def snapshot(s: Scheduler, *, jobs: str | Iterable[str] = ()) -> Snapshot:
    """Return the figures of a scheduler now. Any thread.

    `jobs`: patterns of ids, such as "backup-*". Matching jobs have series of their own, at most MOST_JOBS. Jobs that
    another node has leave that to it, unless they wait in a queue for any node.
    """
    pattern = pattern_of(jobs)
    every, counts = s.jobs(), s.statistics()
    matching = [] if pattern is None else [job for job in every if pattern.match(job.id)]
    if counts.fleet is not None and counts.queue is None:
        matching = [job for job in matching if job.is_ours]
    told = [job for job in matching if encodable(job.id) == job.id][:MOST_JOBS]  # escaped, two ids might be one
    return Snapshot(
        is_running=s.state is SchedulerState.RUNNING,
        statistics=counts,
        states=Counter([job.state for job in every]),
        jobs=tuple(map(_figures_of, told)),
        left_out=None if pattern is None else len(matching) - len(told),
    )


def pattern_of(globs: str | Iterable[str]) -> re.Pattern[str] | None:
    """Return one pattern for all globs; None: there are none. Raises TypeError for anything but texts."""
    given = (globs,) if isinstance(globs, str) else tuple(globs)
    for each in given:
        if not isinstance(each, str):
            msg = f'jobs= takes patterns of ids, such as "backup-*", not {each!r}'
            raise TypeError(msg)
    return re.compile("|".join(map(translate, given))) if given else None


def encodable(label: str) -> str:
    """Return a text that UTF-8 can hold: a name may have half of a surrogate pair."""
    return label if label.isascii() else label.encode("utf-8", "backslashreplace").decode()


def _figures_of(job: Job) -> JobFigures:
    start = job.next_start
    return JobFigures(job.id, job.statistics(), None if start is None else start.timestamp())
