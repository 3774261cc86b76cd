"""A table of jobs and results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from .judging import Judged

_HEAD: Final = ("job", "", "runs", "schedule", "options")


def table(jobs: Sequence[Judged], became: Mapping[str, str]) -> Iterator[str]:
    """Write lines. `became`: what changed."""
    rows = [_HEAD, *(_cells(each, became) for each in jobs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row, job in zip(rows, [None, *jobs], strict=True):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if job is not None:
            yield from (f"    {text}" for text in ([job.why] if job.why else job.remarks))


def _cells(job: Judged, became: Mapping[str, str]) -> tuple[str, str, str, str, str]:
    row = job.row
    if row is None:
        return job.id, "refused", "", "", ""
    options = [f"{name}={_plain(value)}" for name, value in json.loads(row.options).items()]
    if row.paused is not None:
        options.append("paused")
    if job.state is not None and job.state.next_us is not None:
        options.append(f"next {datetime.fromtimestamp(0, UTC) + timedelta(microseconds=job.state.next_us):%F %T}Z")
    return job.id, became.get(job.id, "ready"), row.task, row.schedule, " ".join(options)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
