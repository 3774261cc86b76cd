"""Quick recognition of unchanged jobs that are added again with on_conflict="update".

A service may add all its jobs every minute. Unchanged jobs are not made, planned, stored or compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from schedule import Schedule

from .._jobs import Call, Job
from .._plan import Start
from .._values import Policy
from .conflict import OnConflict


class Unchanged:
    """Any thread; the caller checks again under the lock."""

    def __init__(  # noqa: PLR0917 - what all jobs of a call have in common
        self,
        by_id: Mapping[str, Job],
        is_asked: Callable[[Job], bool],
        on_conflict: OnConflict,
        start: Start,
        task: str | None,
        func: Callable[..., Any],
        call: Call,
        policy: Policy,
    ) -> None:
        self._by_id = by_id
        self._is_asked = is_asked
        self._is_sought = on_conflict == "update" and start is None
        self._task, self._func, self._call = task, func, call
        self._policy, self._like_policy = policy, policy
        self._schedule: Schedule | None = None
        self._like_schedule: Schedule | None = None

    def find(  # noqa: PLR0917 - as a Job takes them
        self,
        id: str,
        schedule: Schedule,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        name: str | None,
        tags: frozenset[str],
    ) -> Job | None:
        """Return the job if it is unchanged and no change waits."""
        if not self._is_sought or (job := self._by_id.get(id)) is None:
            return None
        if job.task != self._task or job.name != name or job.tags != tags or job.call is not self._call:
            return None
        if self._is_asked(job) or job.is_removed or (job.sparse is not None and job.unfit is not None):
            return None
        is_same = self._has_schedule(job, schedule) and self._has_policy(job) and self._calls(job, args, kwargs)
        return job if is_same else None

    def _has_schedule(self, job: Job, schedule: Schedule) -> bool:
        if job.schedule is self._like_schedule and schedule is self._schedule:
            return True
        if job.schedule != schedule:
            return bool(job.schedule == schedule.bind(job.key))
        self._schedule, self._like_schedule = schedule, job.schedule
        return True

    def _has_policy(self, job: Job) -> bool:
        if job.policy is self._like_policy:
            return True
        if job.policy != self._policy:
            return False
        self._like_policy = job.policy
        return True

    def _calls(self, job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Values that cannot be compared differ."""
        try:
            if job.func is not self._func and job.func != self._func:
                return False
            return bool(job.args == args and job.kwargs == kwargs)
        except BaseException:  # noqa: BLE001 - an argument may raise anything when it is compared, such as an array
            return False
