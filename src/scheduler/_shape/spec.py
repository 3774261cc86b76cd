"""JobSpec: everything that says what a job does, as one value that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, Literal

from attrs import field, frozen

from schedule import Every, Missed, Schedule, parse, text_of as text_of_schedule

from .._placement import is_part
from .._values import OPTIONS, Delivery, InvalidJob, Overlap, Policy, Retry
from .json_text import check_text, json_text, kept
from .options import (
    SomeSchedule,
    args_of,
    flag_of,
    id_of,
    kwargs_of,
    parted,
    policy_of,
    refuse_part,
    schedule_of,
    tags_of,
    text_of,
)

_NESTED: Final = {list, tuple, dict}


def typed(value: Any) -> Any:
    """Return what compares arguments: JSON tells True from 1, and Python does not."""
    try:
        return json_text(value, "")
    except (InvalidJob, RuntimeError):  # RuntimeError: another thread changes a dict in it
        return value


@frozen(init=False)
class JobSpec:
    """A job's definition, as `Scheduler.add` takes it. Equal specs mean equal jobs.

    Values are checked and normalised: "60s" and 60 are one timeout, "@every 60s" and "@every 1m" one schedule.
    `task`: the registered name of the function; None: it has none, so that only code can add the job. `owner`: the file
    or set that the job came from; None: code.

    Raises InvalidJob or ScheduleError, in the words of `add`.
    """

    id: str
    task: str | None
    schedule: str
    """Text, in one form."""
    args: tuple[Any, ...] = field(eq=typed)
    kwargs: Mapping[str, Any] = field(eq=typed)
    needs: Mapping[str, int]
    priority: float
    timeout: float | None
    """Seconds."""
    retry: Retry | None
    overlap: Overlap
    max_running: int
    missed: Missed
    grace: float
    """Seconds."""
    catch_up: int
    delivery: Delivery
    place: str | None
    where: str | None
    agents: int | str | None
    apart: str | None
    inline: bool
    tags: frozenset[str]
    name: str | None
    owner: str | None
    policy: Policy = field(init=False, eq=False, repr=False)

    def __init__(
        self,
        id: str,
        task: str | None,
        schedule: SomeSchedule,
        *,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        needs: str | Iterable[str] | Mapping[str, int] = (),
        priority: float = 0,
        timeout: timedelta | float | str | None = None,
        retry: Retry | None = None,
        overlap: Overlap | str = Overlap.SKIP,
        max_running: int | None = None,
        missed: Missed | str = Missed.LATEST,
        grace: timedelta | float | str = 1.0,
        catch_up: int = 100,
        delivery: Delivery | str = Delivery.AT_MOST_ONCE,
        place: str | None = None,
        where: str | None = None,
        agents: int | Literal["all"] | None = None,
        apart: str | None = None,
        inline: bool = False,
        tags: Iterable[str] = (),
        name: str | None = None,
        owner: str | None = None,
    ) -> None:
        policy = policy_of(
            {
                "needs": needs, "priority": priority, "timeout": timeout, "retry": retry, "overlap": overlap,
                "max_running": max_running, "missed": missed, "grace": grace, "catch_up": catch_up,
                "delivery": delivery, "place": place, "where": where, "owner": owner,
            }
        )  # fmt: skip
        refuse_part(policy)
        if agents is not None or apart is not None:
            policy = parted(policy, agents, apart)
        self._take(id, task, schedule, args, kwargs, policy, inline=inline, tags=tags, name=name)

    @classmethod
    def of(  # noqa: PLR0917 - as a job has them
        cls,
        id: str,
        task: str | None,
        schedule: SomeSchedule,
        args: Iterable[Any],
        kwargs: Mapping[str, Any] | None,
        policy: Policy,
        *,
        inline: bool,
        tags: Iterable[str],
        name: str | None,
    ) -> JobSpec:
        """Return the spec of a job whose options are checked."""
        spec = cls.__new__(cls)
        spec._take(id, task, schedule, args, kwargs, policy, inline=inline, tags=tags, name=name)  # noqa: SLF001
        return spec

    def _take(  # noqa: PLR0917 - as a job has them
        self,
        id: str,
        task: str | None,
        schedule: SomeSchedule,
        args: Iterable[Any],
        kwargs: Mapping[str, Any] | None,
        policy: Policy,
        *,
        inline: bool,
        tags: Iterable[str],
        name: str | None,
    ) -> None:
        values = {
            "id": _text("id", id_of(id)),
            "task": _text("task", text_of("task", task)),
            "schedule": _schedule_text(schedule, policy.key_of(id)),
            "args": tuple(map(as_lists, args_of(args))),
            "kwargs": {key: as_lists(value) for key, value in kwargs_of(kwargs).items()},
            "needs": dict(policy.needs),
            "inline": flag_of("inline", inline),
            "tags": frozenset(_text("tags", tag) for tag in tags_of(tags)),
            "name": _text("name", text_of("name", name)),
            "policy": policy,
        }
        for own, value in values.items():
            object.__setattr__(self, own, value)
        for own in _OF_POLICY:
            object.__setattr__(self, own, getattr(policy, own))

    def __hash__(self) -> int:
        return hash((self.id, self.task, self.schedule))

    @property
    def is_part(self) -> bool:
        """Whether the job is one part of a job with `agents`: the whole makes and removes it."""
        return is_part(self.where)


_OF_POLICY: Final = tuple(name for name in OPTIONS if name != "needs")


def _schedule_text(schedule: SomeSchedule, key: str) -> str:
    if isinstance(schedule, str):
        read, text = _parsed(schedule)
        return text_of_schedule(read.bind(key), key) if text is None else text
    return text_of_schedule(schedule_of(schedule).bind(key), key)


@kept(4096)  # few schedules serve many jobs
def _parsed(text: str) -> tuple[Schedule, str | None]:
    """Return the schedule, and its one text if no id changes it."""
    read = parse(text)
    return read, text_of_schedule(read) if type(read) is Every and read.anchor is None else None


def _text(name: str, value: Any) -> Any:
    if value is not None:
        check_text(value, name)
    return value


def as_lists(value: Any) -> Any:
    """Copy lists and mappings. Tuples become lists, as in a store."""
    kind = type(value)
    if kind not in _NESTED:
        return value
    if kind is dict:
        return {key: as_lists(item) for key, item in value.items()}
    return [as_lists(item) for item in value]
