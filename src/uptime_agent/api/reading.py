"""Targets and incidents over HTTP, as this node knows them. Callers who may only read see no errors."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from attrs import frozen

from scheduler.web import TEXT, Answer, Ask, Nothing, Problem, given, whole

from ..acts import NoSuchName, Standing, scope_of
from ..standing import Incident, TargetStatus
from ..text import wording
from .inside import Inside

MOST: Final = 500
"""Targets of a page."""


@frozen(kw_only=True)
class TargetsAsked:
    """A page of targets."""

    after: str | None = given(TEXT, None, "Only targets whose names come after this one.")
    limit: int = given(whole(MOST), MOST, "How many at most.")


async def list_targets(inside: Inside, ask: Ask[TargetsAsked, None]) -> Answer:
    """List the targets by name, a page at a time: how each stands, since when, and what people did to it."""
    after, limit = ask.query.after, ask.query.limit
    rest = sorted((each for each in inside.targets if after is None or each.name > after), key=_name)
    page = rest[:limit]
    more = f"?{urlencode({'after': page[-1].name, 'limit': limit})}" if len(rest) > limit else None
    return Answer(HTTPStatus.OK, {"targets": [_target(inside, each, ask) for each in page], "next": more})


async def get_target(inside: Inside, ask: Ask[Nothing, None]) -> Answer:
    """Return how a target stands."""
    name = ask.names["name"]
    found = next((each for each in inside.targets if each.name == name), None)
    if found is None:
        try:
            scope_of(inside.acts.known, name)
            detail = f"{wording.printable(name)!r} is not checked"
        except NoSuchName as exc:
            detail = str(exc)
        raise Problem(HTTPStatus.NOT_FOUND, "no-such-name", detail)
    return Answer(HTTPStatus.OK, _target(inside, found, ask))


async def list_incidents(inside: Inside, ask: Ask[Nothing, None]) -> Answer:
    """List the open incidents of targets that this node has, and of groups. The earliest comes first."""
    acts = inside.acts.acts_of
    of_groups = [(inside.group_incident(name), acts(name)) for name in inside.acts.known.groups]
    of_targets = [(each.incident, each.acts(each.name)) for each in inside.targets if inside.is_here(each.name)]
    found = [(each, known) for each, known in (*of_targets, *of_groups) if each is not None]
    found.sort(key=_began)
    return Answer(HTTPStatus.OK, {"incidents": [_incident(*each, ask) for each in found]})


async def list_acts(inside: Inside, _ask: Ask[Nothing, None]) -> Answer:
    """List what people did that still holds. The earliest comes first."""
    return Answer(HTTPStatus.OK, {"acts": [{**each.shown(), "text": each.sentence} for each in inside.acts.all()]})


def _target(inside: Inside, target: TargetStatus, ask: Ask[Any, Any]) -> dict[str, Any]:
    last, run, acts = target.last, target.last_run, target.acts(target.name)
    view: dict[str, Any] = {
        "name": target.name,
        "kind": target.kind,
        "url": target.url,
        "status": None if target.status is None else target.status.value,
        "since": _stamp(target.since),
        "checked": None if run is None else _stamp(run.ended.timestamp()),
        "latency_ms": None if last is None or last.latency is None else round(last.latency * 1e3, 3),
        "checks": target.checks,
        "is_here": inside.is_here(target.name),
        "incident": None if target.incident is None else _incident(target.incident, acts, ask),
        "acts": [each.shown() for each in acts],
    }
    return {**view, "error": None if last is None else last.error} if ask.may("operate") else view


def _incident(incident: Incident, acts: Standing, ask: Ask[Any, Any]) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": incident.id,
        "group" if incident.is_group else "target": incident.target,
        "status": incident.status if isinstance(incident.status, str) else incident.status.value,
        "began": _stamp(incident.began),
        "cause": incident.cause,
        "members": incident.members,
        "acknowledged": None if acts.acknowledged is None else acts.acknowledged.shown(),
    }
    return {**view, "error": incident.error} if ask.may("operate") else view


def _stamp(epoch: float | None) -> str | None:
    return None if epoch is None else wording.stamp(epoch)


def _name(target: TargetStatus) -> str:
    return target.name


def _began(found: tuple[Incident, Standing]) -> float:
    return found[0].began
