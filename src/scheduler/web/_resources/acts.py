"""Acts on a job of any owner: run, pause, resume, skip, and a next start by hand."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from attrs import NOTHING, frozen

from ..._plan import instant_of
from ..._shape import to_json
from ..._values import RunMissed
from .._protocol import INSTANT, JSON, TEXT, Answer, Ask, Nothing, Problem, given, optional
from .writes import durable, refuse_unless_running


@frozen(kw_only=True)
class Pausing:
    """How long a job rests, and why."""

    until: datetime | None = given(  # noqa: RUF009 - a field
        optional(INSTANT), None, "When the pause ends by itself; null: with resume."
    )
    reason: str | None = given(optional(TEXT), None, "Why, for people.")


@frozen(kw_only=True)
class Starting:
    """When a job starts next."""

    at: datetime = given(INSTANT, NOTHING, "The next start; one that has passed means now.")  # noqa: RUF009 - a field


async def run_job(ask: Ask[Nothing, Nothing]) -> Answer:
    """Run a job once, now, under its limits. The answer does not wait for the end of the run."""
    refuse_unless_running(ask.s)
    job = ask.s.get(ask.id)
    latest = [] if job.is_ours else await ask.s.history(ask.id, limit=1)
    asked = job.run_now()
    await durable(ask)
    match asked.answer:
        case RunMissed(reason=reason) if reason is not None:
            detail = f"job {ask.id!r} did not run: {reason.value}"
            due = to_json(asked.answer.first_due)
            raise Problem(HTTPStatus.CONFLICT, "not-run", detail, reason=reason.value, due=due)
        case _:
            due = None if asked.due_us is None else instant_of(asked.due_us)
            after = latest[0].due if due is None and latest else None
            return Answer(HTTPStatus.ACCEPTED, {"job_id": ask.id, "due": to_json(due), "after": to_json(after)})


STARTED: Final[JSON] = {
    "type": "object",
    "properties": {
        "job_id": {"type": "string"},
        "due": {"type": ["string", "null"], "description": "The tick of the run; null: another node has the job."},
        "after": {"type": ["string", "null"], "description": "Then the run's tick is due later than this."},
    },
    "required": ["job_id", "due", "after"],
}


async def pause_job(ask: Ask[Nothing, Pausing]) -> Answer:
    """Pause a job until an instant, or until it is resumed. A present run may end."""
    refuse_unless_running(ask.s)
    ask.s.get(ask.id).pause(ask.body.reason, until=ask.body.until)
    return await _done(ask)


async def resume_job(ask: Ask[Nothing, Nothing]) -> Answer:
    """Let a paused job start again. Ticks missed meanwhile stay missed."""
    refuse_unless_running(ask.s)
    ask.s.get(ask.id).resume()
    return await _done(ask)


async def skip_job(ask: Ask[Nothing, Nothing]) -> Answer:
    """Leave out the next regular start of a job."""
    refuse_unless_running(ask.s)
    ask.s.get(ask.id).skip()
    return await _done(ask)


async def supersede_job(ask: Ask[Nothing, Nothing]) -> Answer:
    """Replace a next start that was set or skipped by hand with the schedule's."""
    refuse_unless_running(ask.s)
    ask.s.get(ask.id).supersede()
    return await _done(ask)


async def set_next_start(ask: Ask[Nothing, Starting]) -> Answer:
    """Replace the next start of a job, once."""
    refuse_unless_running(ask.s)
    ask.s.get(ask.id).set_next_start(ask.body.at)
    return await _done(ask)


async def _done(ask: Ask[Any, Any]) -> Answer:
    await durable(ask)
    return Answer(HTTPStatus.NO_CONTENT)
