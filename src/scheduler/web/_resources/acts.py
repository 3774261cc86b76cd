"""Acts on a job of any owner: run, pause, resume, skip, and a next start by hand."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any

from attrs import NOTHING, frozen

from ..._values import RunMissed
from .._protocol import INSTANT, TEXT, Answer, Ask, Nothing, Problem, given, optional
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
    asked = ask.s.get(ask.id).run_now()
    await durable(ask)
    match asked.answer:
        case RunMissed(reason=reason) if reason is not None:
            detail = f"job {ask.id!r} did not run: {reason.value}"
            raise Problem(HTTPStatus.CONFLICT, "not-run", detail, reason=reason.value)
        case _:
            return Answer(HTTPStatus.ACCEPTED, {"job_id": ask.id})


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


async def set_next_start(ask: Ask[Nothing, Starting]) -> Answer:
    """Replace the next start of a job, once."""
    refuse_unless_running(ask.s)
    ask.s.get(ask.id).set_next_start(ask.body.at)
    return await _done(ask)


async def _done(ask: Ask[Any, Any]) -> Answer:
    await durable(ask)
    return Answer(HTTPStatus.NO_CONTENT)
