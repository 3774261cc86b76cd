"""Acts of people over HTTP. The actor is the caller. The act is in the store when the answer comes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypeVar

from attrs import NOTHING, frozen

from scheduler import RunMissed, to_json
from scheduler.web import (
    INSTANT,
    TEXT,
    Answer,
    Ask,
    Nothing,
    Problem,
    durable,
    given,
    optional,
    refuse_unless_running,
)

from ..acts import Act, ActRefused, ActUnfit, NoSuchName, scope_of
from .inside import Inside

T = TypeVar("T")

_ABOUT_ACTOR = "Who acts, if it is not the caller. Only callers with the scope admin may name another."


@frozen(kw_only=True)
class By:
    """Who acts."""

    actor: str | None = given(optional(TEXT), None, _ABOUT_ACTOR)


@frozen(kw_only=True)
class Reasoned(By):
    """Who acts, and why."""

    reason: str = given(TEXT, NOTHING, "Why: others read it.")


@frozen(kw_only=True)
class Lasting(Reasoned):
    """Who acts, why, and until when, if there is an end."""

    until: datetime | None = given(optional(INSTANT), None, "When it ends by itself; null: when it is ended.")  # noqa: RUF009 - a field


@frozen(kw_only=True)
class Ending(Reasoned):
    """Who acts, why, and until when."""

    until: datetime = given(INSTANT, NOTHING, "When it ends by itself.")  # noqa: RUF009 - a field


async def acknowledge(inside: Inside, kind: str, ask: Ask[Nothing, Reasoned]) -> Answer:
    """Acknowledge the open incident: its reminders rest until it is over."""
    return await _acted(
        ask, lambda: inside.acts.acknowledge(_named(inside, kind, ask), reason=ask.body.reason, actor=_actor(ask))
    )


async def end_acknowledgement(inside: Inside, kind: str, ask: Ask[By, None]) -> Answer:
    """Take an acknowledgement back: reminders come again."""
    return await _acted(
        ask, lambda: inside.acts.end_acknowledgement(_named(inside, kind, ask), actor=_actor_of(ask, ask.query))
    )


async def silence(inside: Inside, kind: str, ask: Ask[Nothing, Ending]) -> Answer:
    """Send no message about it for a while."""
    until, reason = ask.body.until, ask.body.reason
    return await _acted(
        ask, lambda: inside.acts.silence(**_scope(kind, ask), until=until, reason=reason, actor=_actor(ask))
    )


async def end_silence(inside: Inside, kind: str, ask: Ask[By, None]) -> Answer:
    """End a silence. What is still open is told."""
    return await _acted(ask, lambda: inside.acts.end_silence(**_scope(kind, ask), actor=_actor_of(ask, ask.query)))


async def begin_maintenance(inside: Inside, kind: str, ask: Ask[Nothing, Lasting]) -> Answer:
    """Leave out its checks, for a while or until it is ended."""
    until, reason = ask.body.until, ask.body.reason
    return await _acted(
        ask, lambda: inside.acts.begin_maintenance(**_scope(kind, ask), until=until, reason=reason, actor=_actor(ask))
    )


async def end_maintenance(inside: Inside, kind: str, ask: Ask[By, None]) -> Answer:
    """End a maintenance that was begun by hand."""
    return await _acted(ask, lambda: inside.acts.end_maintenance(**_scope(kind, ask), actor=_actor_of(ask, ask.query)))


async def pause_target(inside: Inside, _kind: str, ask: Ask[Nothing, Lasting]) -> Answer:
    """Check a target no more, for a while or until it is resumed."""
    until, reason = ask.body.until, ask.body.reason
    return await _acted(
        ask, lambda: inside.acts.pause(ask.names["name"], until=until, reason=reason, actor=_actor(ask))
    )


async def resume_target(inside: Inside, _kind: str, ask: Ask[Nothing, By]) -> Answer:
    """Check a paused target again, whoever paused it."""
    await _made(ask, lambda: inside.acts.resume(ask.names["name"], actor=_actor(ask)))
    return Answer(HTTPStatus.NO_CONTENT)


async def check_now(inside: Inside, _kind: str, ask: Ask[Nothing, By]) -> Answer:
    """Check a target at once. The result counts. The answer does not wait for it."""
    asked = await _made(ask, lambda: inside.acts.check_now(ask.names["name"], actor=_actor(ask)))
    if isinstance(asked.answer, RunMissed) and asked.answer.reason is not None:
        reason = asked.answer.reason.value
        detail = f"{ask.names['name']!r} was not checked: {reason}"
        due = to_json(asked.answer.first_due)
        raise Problem(HTTPStatus.CONFLICT, "not-run", detail, reason=reason, due=due)
    return Answer(HTTPStatus.ACCEPTED, {"target": ask.names["name"]})


# ----------------------------------------------------------------------------------------------------------------------


async def _acted(ask: Ask[Any, Any], verb: Callable[[], Act]) -> Answer:
    act = await _made(ask, verb)
    return Answer(HTTPStatus.OK, {**act.shown(), "text": act.sentence})


async def _made(ask: Ask[Any, Any], verb: Callable[[], T]) -> T:
    """Act, and wait until that is durable. Raises Problem."""
    refuse_unless_running(ask.s)
    try:
        made = verb()
    except NoSuchName as exc:
        raise Problem(HTTPStatus.NOT_FOUND, "no-such-name", str(exc)) from None
    except ActUnfit as exc:
        key = str(exc).partition(":")[0]
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", str(exc), key=key) from None
    except ActRefused as exc:
        raise Problem(HTTPStatus.CONFLICT, "act-refused", str(exc)) from None
    await durable(ask)
    return made


def _named(inside: Inside, kind: str, ask: Ask[Any, Any]) -> str:
    """Return the name in the path. Raises NoSuchName if it is of another kind."""
    return scope_of(inside.acts.known, **_scope(kind, ask)).name


def _scope(kind: str, ask: Ask[Any, Any]) -> dict[str, Any]:
    return {"target": None, kind: ask.names["name"]}


def _actor(ask: Ask[Any, Any]) -> str:
    return _actor_of(ask, ask.body)


def _actor_of(ask: Ask[Any, Any], by: By) -> str:
    """Return the caller, or whom it names."""
    assert ask.who is not None
    if by.actor is None or by.actor == ask.who.name:
        return ask.who.name
    if not ask.may("admin"):
        detail = f"{ask.who.name} may not act as {by.actor!r:.200}: leave actor out, or get the scope 'admin'"
        raise Problem(HTTPStatus.FORBIDDEN, "scope", detail)
    return by.actor
