"""What users may say to `Scheduler.add` and `Job.update`, checked and put into the form that the loop works with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeGuard, TypeVar

from attrs import evolve

from schedule import Missed, Schedule, ScheduleError, duration, parse
from schedule._errors import shown
from schedule._instant import utc
from timerqueue import needs_of

from ._errors import InvalidJob
from ._policy import OPTIONS, Delivery, Overlap, Policy
from ._retry import Retry

T = TypeVar("T")

DEFAULT: Final = Policy()
MOST_CATCH_UP: Final = 10_000
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
    """`base` with these options.

    Raises InvalidJob for a value that makes no sense, and for an option that does not exist.
    """
    if options.get("max_running", 1) is None:
        options = {name: value for name, value in options.items() if name != "max_running"}
    changes = {name: _CHECKS[name](name, value) for name, value in options.items() if name in _CHECKS}
    unknown = sorted(set(options) - set(_CHECKS))
    if unknown:
        msg = f"there is no option {unknown[0]!r}; there are {', '.join(sorted(_CHECKS))}"
        raise InvalidJob(msg)
    if changes.get("overlap") is Overlap.ALLOW and "max_running" not in changes and base.max_running == 1:
        changes["max_running"] = DEFAULT_MAX_RUNNING
    policy = evolve(base, **changes)
    if policy.overlap is Overlap.REPLACE and policy.missed is Missed.ALL:
        msg = "overlap=REPLACE drops the ticks that missed=ALL would make up for: choose one of them"
        raise InvalidJob(msg)
    return policy


def part_of(name: str, value: T, verb: str, such_as: str) -> T:
    """What a scheduler is made of, if it has that verb. Raises TypeError."""
    if not callable(getattr(value, verb, None)) or isinstance(value, type):
        msg = f"{name} must be something such as {such_as}, not {value!r}"
        raise TypeError(msg)
    return value


def seconds_of(name: str, value: Any) -> float:
    """A duration in seconds. Raises InvalidJob, which names the argument."""
    try:
        return duration(value).total_seconds()
    except ScheduleError as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def aware(name: str, value: Any) -> datetime:
    """A datetime with a zone, in UTC. Raises InvalidJob, which names the argument."""
    if not isinstance(value, datetime):
        msg = f"{name} must be an aware datetime, such as datetime.now(UTC) + timedelta(hours=1), not {shown(value)}"
        raise InvalidJob(msg)
    if value.utcoffset() is None:
        msg = (
            f"{name} must be an aware datetime, not the naive {value.isoformat()}: say in which zone it is meant, as "
            "in .replace(tzinfo=UTC)"
        )
        raise InvalidJob(msg)
    try:
        return utc(value)
    except ScheduleError as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def some_seconds_of(name: str, value: Any) -> float | None:
    """The same for a length that may be None and may not be nothing."""
    if value is None:
        return None
    seconds = seconds_of(name, value)
    if not seconds:
        msg = f"{name} must be longer than nothing, not {value!r}; for none give None"
        raise InvalidJob(msg)
    return seconds


def _needs(name: str, value: Any) -> Any:
    try:
        return needs_of(value)
    except (TypeError, ValueError) as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def _priority(name: str, value: Any) -> float:
    if not _is_number(value):
        msg = f"{name} must be a finite number, higher goes first, not {shown(value)}"
        raise InvalidJob(msg)
    return value


def _is_number(value: Any) -> TypeGuard[float]:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def count_of(name: str, value: Any) -> int:
    """A whole number from 1. Raises InvalidJob, which names the argument."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"{name} must be a whole number from 1, not {value!r}"
        raise InvalidJob(msg)
    return value


def _catch_up(name: str, value: Any) -> int:
    if count_of(name, value) > MOST_CATCH_UP:
        msg = f"{name} must be {MOST_CATCH_UP:,} at most, not {value!r}: all of them would wait at once"
        raise InvalidJob(msg)
    return int(value)


def _delivery(name: str, value: Any) -> Delivery:
    try:
        return Delivery(value)
    except ValueError:
        msg = f'{name} must be "at_most_once" or "at_least_once", or a Delivery, not {value!r}'
        raise InvalidJob(msg) from None


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
    "timeout": some_seconds_of,
    "retry": _one_of(Retry, optional=True),
    "overlap": _one_of(Overlap),
    "max_running": count_of,
    "missed": _one_of(Missed),
    "grace": seconds_of,
    "catch_up": _catch_up,
    "delivery": _delivery,
}

assert set(_CHECKS) == set(OPTIONS)


def tags_of(tags: Iterable[str]) -> frozenset[str]:
    """Tags as a set. A single text is one tag. Raises InvalidJob."""
    if isinstance(tags, str):
        return frozenset((tags,))
    found = frozenset(tags) if isinstance(tags, Iterable) else None
    if found is None or not all(isinstance(tag, str) for tag in found):
        msg = f"tags must be texts, not {tags!r}"
        raise InvalidJob(msg)
    return found


def args_of(args: Iterable[Any]) -> tuple[Any, ...]:
    """Positional arguments.

    Raises InvalidJob for a text, whose letters nobody means, and for what cannot be gone through.
    """
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        msg = f"args must be a tuple or list of arguments, such as ({args!r},), not {args!r}"
        raise InvalidJob(msg)
    return tuple(args)


def kwargs_of(kwargs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Keyword arguments. Raises InvalidJob for anything but a mapping from texts."""
    if kwargs is None:
        return NO_KWARGS
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        msg = f"kwargs must be a mapping from names to arguments, not {kwargs!r}"
        raise InvalidJob(msg)
    return dict(kwargs) if kwargs else NO_KWARGS


def id_of(id: str) -> str:
    """A job's id. Raises InvalidJob for anything but a text with something in it."""
    if not isinstance(id, str) or not id:
        msg = f"id must be a text with something in it, not {id!r}"
        raise InvalidJob(msg)
    return id


NO_KWARGS: Final[Mapping[str, Any]] = {}
NO_TAGS: Final[frozenset[str]] = frozenset()
