"""What users may say to `Scheduler.add` and `Job.update`, checked and put into the form that the loop works with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import evolve, fields

from schedule import Missed, Schedule, ScheduleError, duration, parse
from timerqueue import needs_of

from ._errors import InvalidJob
from ._policy import Overlap, Policy
from ._retry import Retry

DEFAULT: Final = Policy()
DEFAULT_MAX_RUNNING: Final = 10


def schedule_of(value: Schedule | str) -> Schedule:
    """A schedule, or text for `schedule.parse`. Raises ScheduleError or InvalidJob."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, str):
        return parse(value)
    msg = f'schedule must be a Schedule such as Every("10s"), or text such as "@every 10s", not {value!r}'
    raise InvalidJob(msg)


def policy_of(options: Mapping[str, Any], base: Policy = DEFAULT) -> Policy:
    """`base` with these options. Raises InvalidJob for a value that makes no sense, and for an option that does not exist."""
    if options.get("max_running", 1) is None:
        options = {name: value for name, value in options.items() if name != "max_running"}
    changes = {name: _CHECKS[name](name, value) for name, value in options.items() if name in _CHECKS}
    unknown = sorted(set(options) - set(_CHECKS))
    if unknown:
        msg = f"there is no option {unknown[0]!r}; there are {', '.join(sorted(_CHECKS))}"
        raise InvalidJob(msg)
    if changes.get("overlap") is Overlap.ALLOW and "max_running" not in changes and base.max_running == 1:
        changes["max_running"] = DEFAULT_MAX_RUNNING
    return evolve(base, **changes)


def _seconds(name: str, value: Any) -> float:
    try:
        return duration(value).total_seconds()
    except ScheduleError as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def _timeout(name: str, value: Any) -> float | None:
    if value is None:
        return None
    seconds = _seconds(name, value)
    if not seconds:
        msg = f"{name} must be longer than nothing; for no timeout leave it out or give None"
        raise InvalidJob(msg)
    return seconds


def _needs(name: str, value: Any) -> Any:
    try:
        return needs_of(value)
    except (TypeError, ValueError) as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def _priority(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        msg = f"{name} must be a finite number, higher goes first, not {value!r}"
        raise InvalidJob(msg)
    return value


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"{name} must be a whole number from 1, not {value!r}"
        raise InvalidJob(msg)
    return value


def _one_of(kind: type, *, optional: bool = False) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        if isinstance(value, kind) or (optional and value is None):
            return value
        msg = f"{name} must be a {kind.__name__}, such as {_EXAMPLES[kind]}, not {value!r}"
        raise InvalidJob(msg)

    return check


_EXAMPLES: Final[Mapping[type, str]] = {
    Retry: 'Retry.exponential("1s", max_retries=3)',
    Overlap: "Overlap.SKIP",
    Missed: "Missed.LATEST",
}

_CHECKS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "needs": _needs,
    "priority": _priority,
    "timeout": _timeout,
    "retry": _one_of(Retry, optional=True),
    "overlap": _one_of(Overlap),
    "max_running": _count,
    "missed": _one_of(Missed),
    "grace": _seconds,
    "catch_up": _count,
}

assert set(_CHECKS) == {attribute.name for attribute in fields(Policy)}


def tags_of(tags: Iterable[str]) -> frozenset[str]:
    """Tags as a set. A single text is one tag."""
    return frozenset((tags,) if isinstance(tags, str) else tags)
