"""Options of `Scheduler.add` and `Job.update`, checked, in the loop's form.

The functions return that form, or raise InvalidJob, which names the argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, TypeGuard, TypeVar

from attrs import evolve

from schedule import Every, Missed, Schedule, ScheduleError, duration, parse, shown
from timerqueue import needs_of

from .._placement import EVERY_AGENT, is_label, is_part, labels_of
from .._plan import aware
from .._values import MAX_DELAY_S, OPTIONS, Delivery, InvalidJob, Overlap, Policy, Retry
from .json_text import LARGEST, check_text

T = TypeVar("T")

SomeSchedule = Schedule | str | timedelta | float
"""A schedule, the text of one, or the interval of an Every: a timedelta, or seconds."""

DEFAULT: Final = Policy()
MOST_CATCH_UP: Final = 10_000
DEFAULT_MAX_RUNNING: Final = 10
SHORTEST_POLL: Final = 0.001
"""Seconds. Asking a store more often would keep a core busy."""

LONGEST_PLACE: Final = 1_000
LONGEST_OWNER: Final = 200

MOST_AGENTS: Final = 1_000
APART: Final = "zone"
"""The default label in which nodes differ."""


def schedule_of(value: SomeSchedule) -> Schedule:
    """Raises ScheduleError, too."""
    if isinstance(value, Schedule):
        return value
    if isinstance(value, str):
        return parse(value)
    if _is_number(value) or isinstance(value, timedelta):
        return Every(value)
    msg = f'schedule must be a Schedule such as Every("10s"), or text such as "@every 10s", not {shown(value)}'
    raise InvalidJob(msg)


def policy_of(options: Mapping[str, Any], base: Policy = DEFAULT) -> Policy:
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


def limit_of(name: str, value: Any) -> float:
    if value == math.inf or (_is_number(value) and value >= 1 and value == int(value)):
        return value  # type: ignore[no-any-return]
    msg = f"{name} must be a whole number from 1, or math.inf for no limit, not {shown(value)}"
    raise InvalidJob(msg)


def limits_of(limits: Mapping[str, float] | None) -> Mapping[str, float] | None:
    if limits is None:
        return None
    if not isinstance(limits, Mapping) or not all(isinstance(name, str) for name in limits):
        msg = f'limits must be a mapping from names to numbers, such as {{"http": 200}}, not {shown(limits)}'
        raise InvalidJob(msg)
    return {name: limit_of(f"limit {name!r}", value) for name, value in limits.items()}


def text_of(name: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    msg = f"{name} must be a text, not {shown(value)}"
    raise InvalidJob(msg)


def flag_of(name: str, value: Any) -> bool:
    """Not 0 or 1."""
    if isinstance(value, bool):
        return value
    msg = f"{name} must be True or False, not {shown(value)}"
    raise InvalidJob(msg)


def tag_of(value: Any) -> str | None:
    """None: all jobs."""
    tag = text_of("tag", value)
    if tag is not None:
        check_text(tag, "tag")
    return tag


def reason_of(value: Any) -> str | None:
    reason = text_of("reason", value)
    if reason is not None:
        check_text(reason, "reason")
        if len(reason) > LARGEST:
            msg = f"reason is {len(reason)} characters long: at most {LARGEST} can be stored"
            raise InvalidJob(msg)
    return reason


def part_of(name: str, value: T, verb: str, such_as: str) -> T:
    """Raises TypeError if it lacks that verb."""
    if not callable(getattr(value, verb, None)) or isinstance(value, type):
        msg = f"{name} must be something such as {such_as}, not {shown(value)}"
        raise TypeError(msg)
    return value


def seconds_of(name: str, value: Any) -> float:
    try:
        return duration(value).total_seconds()
    except ScheduleError as exc:
        msg = f"{name}: {exc}"
        raise InvalidJob(msg) from None


def until_of(value: Any, now: datetime) -> datetime:
    until = aware("until", value)
    if until <= now:
        msg = f"until={value} has passed: a pause ends in the future, or with resume()"
        raise InvalidJob(msg)
    return until


def some_seconds_of(name: str, value: Any) -> float | None:
    """Longer than zero, or None."""
    if value is None:
        return None
    seconds = seconds_of(name, value)
    if not seconds:
        msg = f"{name} must be longer than nothing, not {shown(value)}; for none give None"
        raise InvalidJob(msg)
    return seconds


def delay_of(name: str, value: Any) -> float:
    """A hundred years at most, so that its end is a valid instant."""
    return min(seconds_of(name, value), MAX_DELAY_S)


def poll_of(name: str, value: Any) -> float:
    seconds = seconds_of(name, value)
    if seconds < SHORTEST_POLL:
        msg = f"{name} must be at least {SHORTEST_POLL:g} s, not {shown(value)}"
        raise InvalidJob(msg)
    return seconds


def _needs(name: str, value: Any) -> Any:
    try:
        return needs_of(value)
    except (TypeError, ValueError) as exc:
        msg = f"{name}: {str(exc).removeprefix(f'{name} ')}"
        raise InvalidJob(msg) from None


def _priority(name: str, value: Any) -> float:
    if not _is_number(value):
        msg = f"{name} must be a finite number, higher goes first, not {shown(value)}"
        raise InvalidJob(msg)
    return value


def _is_number(value: Any) -> TypeGuard[float]:
    try:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # no float can hold such a whole number
        return False


def count_of(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        msg = f"{name} must be a whole number from 1, not {shown(value)}"
        raise InvalidJob(msg)
    return value


def _catch_up(name: str, value: Any) -> int:
    if count_of(name, value) > MOST_CATCH_UP:
        msg = f"{name} must be {MOST_CATCH_UP:,} at most, not {shown(value)}: all of them would wait at once"
        raise InvalidJob(msg)
    return int(value)


def _delivery(name: str, value: Any) -> Delivery:
    try:
        return Delivery(value)
    except ValueError:
        msg = f'{name} must be "at_most_once" or "at_least_once", or a Delivery, not {shown(value)}'
        raise InvalidJob(msg) from None


def _one_of(kind: type, *, optional: bool = False) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        if isinstance(value, kind) or (optional and value is None):
            return value
        if issubclass(kind, Enum) and isinstance(value, str) and value.upper() in kind.__members__:
            return kind[value.upper()]
        msg = f"{name} must be {_ARTICLES[kind]} {kind.__name__}, not {shown(value)}: write {_EXAMPLES[kind]}"
        raise InvalidJob(msg)

    return check


_ARTICLES: Final[Mapping[type, str]] = {Retry: "a", Overlap: "an", Missed: "a"}
_EXAMPLES: Final[Mapping[type, str]] = {
    Retry: 'Retry.exponential("1s", max_retries=3)',
    Overlap: "Overlap.SKIP",
    Missed: "Missed.LATEST",
}


def _place(name: str, value: Any) -> str | None:
    place = text_of(name, value)
    if place is not None:
        check_text(place, name)
        if not 0 < len(place) <= LONGEST_PLACE:
            msg = f"{name} must be a text of 1 to {LONGEST_PLACE} characters, not {shown(value)}"
            raise InvalidJob(msg)
    return place


def _owner(name: str, value: Any) -> str | None:
    owner = text_of(name, value)
    if owner is not None and (not 0 < len(owner) <= LONGEST_OWNER or not owner.isprintable()):
        msg = f"{name} must be a text of 1 to {LONGEST_OWNER} printable characters, or None, not {shown(value)}"
        raise InvalidJob(msg)
    return owner


def _where(name: str, value: Any) -> str | None:
    where = _place(name, value)
    if where is not None and not is_part(where):
        try:
            labels_of(where)
        except ValueError as exc:
            msg = f'where must be labels such as "region=eu" or "region=eu,zone=a", not {shown(value)}: {exc}'
            raise InvalidJob(msg) from None
    return where


def _agents(name: str, value: Any) -> int | str | None:
    if value is None or (isinstance(value, str) and value == EVERY_AGENT):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_AGENTS:
        msg = f'{name} must be a whole number from 1 to {MOST_AGENTS:,}, or "{EVERY_AGENT}", not {shown(value)}'
        raise InvalidJob(msg)
    return value


def _apart(name: str, value: Any) -> str | None:
    if value is None or (isinstance(value, str) and is_label(value)):
        return value
    msg = f'{name} must be the name of a label such as "zone", not {shown(value)}'
    raise InvalidJob(msg)


def refuse_part(policy: Policy) -> None:
    """Raise InvalidJob for a part: only its whole makes it."""
    if is_part(policy.where):
        msg = f'where must be labels such as "region=eu", not the text of a part, {policy.where!r}: give agents'
        raise InvalidJob(msg)


def parted(policy: Policy, agents: int | str | None, apart: str | None) -> Policy:
    """Raises InvalidJob if options contradict each other."""
    policy = policy_of({"agents": agents, "apart": apart}, policy)
    if policy.apart is not None and not isinstance(policy.agents, int):
        msg = f"apart={apart!r} is for a number of agents, such as agents=3"
        raise InvalidJob(msg)
    if policy.place is not None:
        msg = f"place={policy.place!r} is one agent, and agents={agents!r} asks for several: leave one of them out"
        raise InvalidJob(msg)
    return policy if policy.apart or not isinstance(policy.agents, int) else evolve(policy, apart=APART)


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
    "place": _place,
    "where": _where,
    "agents": _agents,
    "apart": _apart,
    "owner": _owner,
}

assert set(_CHECKS) == set(OPTIONS)


def tags_of(tags: Iterable[str]) -> frozenset[str]:
    """A single text is one tag."""
    if isinstance(tags, str):
        return frozenset((tags,))
    found = frozenset(tags) if isinstance(tags, Iterable) else None
    if found is None or not all(isinstance(tag, str) for tag in found):
        msg = f"tags must be texts, not {shown(tags)}"
        raise InvalidJob(msg)
    return found


def args_of(args: Iterable[Any]) -> tuple[Any, ...]:
    """A text would be a list of letters."""
    if isinstance(args, (str, bytes)) or not isinstance(args, Iterable):
        msg = f"args must be a tuple or list of arguments, such as ({shown(args)},), not {shown(args)}"
        raise InvalidJob(msg)
    return tuple(args)


_ONLY_TEXT: Final = {str}


def kwargs_of(kwargs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if kwargs is None:
        return NO_KWARGS
    if type(kwargs) is dict and {*map(type, kwargs)} == _ONLY_TEXT:  # nearly always
        return dict(kwargs)
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        msg = f"kwargs must be a mapping from names to arguments, not {shown(kwargs)}"
        raise InvalidJob(msg)
    return dict(kwargs) if kwargs else NO_KWARGS


def id_of(id: str) -> str:
    if not isinstance(id, str) or not id:
        msg = f"id must be a text with something in it, not {shown(id)}"
        raise InvalidJob(msg)
    return id


NO_KWARGS: Final[Mapping[str, Any]] = {}
NO_TAGS: Final[frozenset[str]] = frozenset()
