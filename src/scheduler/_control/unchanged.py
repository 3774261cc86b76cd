"""Quick recognition of unchanged jobs that are added again with on_conflict="update".

A service may add all its jobs every minute. Unchanged jobs are not made, planned, stored or compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from marshal import dumps
from typing import Any, Final

from schedule import Schedule

from .._jobs import Call, Job
from .._plan import Start
from .._shape import typed
from .._values import Policy
from .conflict import OnConflict

_PLAIN: Final = frozenset({str, int, bool, float})
"""Types whose equal values are equal as JSON, if they are not 0.0 and -0.0."""

_WITHOUT_REFERENCES: Final = 2
"""The format of `marshal` in which equal values have equal bytes."""


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
        if (job.schedule is not self._like_schedule or schedule is not self._schedule) and not self._has_schedule(
            job, schedule
        ):
            return None
        if job.policy is not self._like_policy and not self._has_policy(job):
            return None
        return job if self._calls(job, args, kwargs) else None

    def _has_schedule(self, job: Job, schedule: Schedule) -> bool:
        if job.schedule != schedule:
            return bool(job.schedule == schedule.bind(job.key))
        self._schedule, self._like_schedule = schedule, job.schedule
        return True

    def _has_policy(self, job: Job) -> bool:
        if job.policy != self._policy:
            return False
        self._like_policy = job.policy
        return True

    def _calls(self, job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Values that cannot be compared differ."""
        try:
            if job.func is not self._func and job.func != self._func:
                return False
            ours = job.args
            if ours != args or (job.kwargs is not kwargs and job.kwargs != kwargs):
                return False
            is_same = True
            for our, other in zip(ours, args):  # noqa: B905 - equal tuples have equal lengths, and `strict` costs time
                if our is not other and (type(our) not in _PLAIN or not our or type(our) is not type(other)):
                    is_same = is_same and _are_alike(our, other)
            if kwargs:
                for name, our in job.kwargs.items():
                    other = kwargs[name]
                    if our is not other and (type(our) not in _PLAIN or not our or type(our) is not type(other)):
                        is_same = is_same and _are_alike(our, other)
            return is_same
        except BaseException:  # noqa: BLE001 - an argument may raise anything when it is compared, such as an array
            return False


def _are_alike(our: Any, other: Any) -> bool:
    """Return whether equal values are equal as JSON, too: True is not 1."""
    if type(our) is not type(other):
        return False
    try:
        if dumps(our, _WITHOUT_REFERENCES) == dumps(other, _WITHOUT_REFERENCES):  # a twentieth of the time of JSON
            return True
    except ValueError:  # an object
        pass
    return bool(typed(our) == typed(other))
