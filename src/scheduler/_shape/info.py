"""A job with how it stands, and a run that goes on or waits, each as one value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from attrs import frozen

from .._values import JobState, JobStatistics, Pause
from .spec import JobSpec


class Informed:
    """Something that `to_json` shows by another value."""

    __slots__ = ()

    def info(self) -> Any:
        """Return the value to show."""
        raise NotImplementedError


@frozen(kw_only=True)
class JobInfo:
    """A job at one moment: its definition, and how it stands.

    `spec`: None if it cannot be told, and `spec_error` says why. In JSON it is null also if JSON cannot hold its
    arguments. `func`: the function's name in the code. `pauses`: the pauses that hold the job now. `node`: the node
    that has the job; None: the store is not shared. `is_ours`: whether this scheduler has it. `error`: why the job does
    not start by itself.
    """

    id: str
    spec: JobSpec | None
    spec_error: str | None
    func: str
    state: JobState
    next_start: datetime | None
    pauses: tuple[Pause, ...]
    error: str | None
    node: str | None
    is_ours: bool
    statistics: JobStatistics


@frozen(kw_only=True)
class RunInfo:
    """A run that goes on, or waits for room.

    `due`: the tick's instant. `since`: when the run began, or when it became due. `needs`: the units that it holds or
    waits for. `tasks`: its tasks that have not ended, subtasks included. `waits_for`: the full limit of `needs`, if
    there is one. `reason`: why it waits, in words.
    """

    job_id: str
    due: datetime
    attempt: int
    state: Literal["waiting", "running"]
    since: datetime
    needs: Mapping[str, int]
    tasks: int = 0
    waits_for: str | None = None
    reason: str | None = None
