"""What `Job.update` may change, checked as a whole before any of it is applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen

from schedule import Schedule

from .._jobs.call import call_of, on_the_loop
from .._jobs.job import Job
from .._jobs.json_text import copied
from .._jobs.options import args_of, kwargs_of, policy_of, tags_of, text_of
from .._jobs.thread_call import Call
from .._journal.definition import stored_job
from .._plan.first_start import Start
from .._values.errors import InvalidJob
from .._values.policy import OPTIONS, Policy

_DEFINITION: Final = frozenset({"func", "args", "kwargs", "inline", "tags", "name", "start"})


@frozen
class Update:
    """A job's definition as it will be."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    call: Call
    policy: Policy
    tags: frozenset[str]
    name: str | None
    start: Start


def update_of(job: Job, changes: Mapping[str, Any]) -> Update:
    """The job with these changes; what they do not name stays. Raises InvalidJob."""
    unknown = sorted(set(changes) - set(OPTIONS) - _DEFINITION)
    if unknown:
        msg = f"update has no {unknown[0]!r}; it has schedule, {', '.join(sorted({*OPTIONS, *_DEFINITION}))}"
        raise InvalidJob(msg)
    func = changes.get("func", job.func)
    inline = changes.get("inline", job.call is on_the_loop)
    return Update(
        func=func,
        args=args_of(changes.get("args", job.args)),
        kwargs=kwargs_of(changes.get("kwargs", job.kwargs)),
        call=call_of(func, inline=inline),
        policy=policy_of({name: value for name, value in changes.items() if name in OPTIONS}, job.policy),
        tags=tags_of(changes.get("tags", job.tags)),
        name=text_of("name", changes.get("name", job.name)),
        start=changes.get("start"),
    )


def check_row(job: Job, task: str, update: Update, schedule: Schedule) -> None:
    """Raise InvalidJob if the job could not be stored with that update."""
    inline = update.call is on_the_loop
    stored_job(
        job.id, task, schedule, update.args, update.kwargs, update.policy, inline, update.tags, update.name, None, None
    )


def settled(value: Any) -> Any:
    """An iterator as what it gives out, so that it can be looked at twice."""
    return tuple(value) if isinstance(value, Iterator) else value


def apart(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Changes of a stored job, with arguments of its own: it is called with what is stored, whatever the caller does
    with what was given.
    """
    return {name: copied(value) if name in {"args", "kwargs"} else value for name, value in changes.items()}
