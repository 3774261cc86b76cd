"""A whole set of jobs of one owner, put at once."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from attrs import frozen

from schedule import shown

from ..._scheduler import Scheduler
from ..._sets import Synced
from ..._shape import JobSpec, from_json, to_json
from ..._values import InvalidJob
from .._protocol import FLAG, JSON, Answer, Ask, given, invalid
from .writes import changed, check_id, check_owner, refuse_unless_running

LARGE: Final = 8 * 1024 * 1024
"""Bytes of a set."""


@frozen(kw_only=True)
class SetAsked:
    """How a set is put."""

    dry_run: bool = given(FLAG, False, "Answer what would change, and change nothing.")  # noqa: FBT003 - a default
    prune: bool = given(FLAG, True, "Remove the owner's jobs that are not in the set.")  # noqa: FBT003 - a default


def read_set(body: JSON) -> list[JSON]:
    """Return the jobs of the body. Raises Problem."""
    jobs = body.get("jobs") if isinstance(body, dict) and set(body) == {"jobs"} else None
    if not isinstance(jobs, list):
        raise invalid(f'the body must be {{"jobs": [...]}}, with all jobs of the set, not {shown(body)}', "jobs")
    return jobs


async def put_set(ask: Ask[SetAsked, list[JSON]]) -> Answer:
    """Make the jobs of an owner this set: add, change, and remove those not in it.

    Nothing changes unless the whole set is right.
    """
    owner = check_owner(ask.names["owner"])
    refuse_unless_running(ask.s)
    query = ask.query
    synced = await changed(ask, lambda: _synced(ask.s, ask.body, owner, query), is_asked_only=query.dry_run)
    return Answer(HTTPStatus.OK, {"dry_run": query.dry_run, **to_json(synced)})


def _synced(s: Scheduler, jobs: list[JSON], owner: str, query: SetAsked) -> Synced:
    specs = [_spec_of(index, data, owner) for index, data in enumerate(jobs)]
    return s.sync(specs, owner=owner, prune=query.prune, dry_run=query.dry_run)


def _spec_of(index: int, data: JSON, owner: str) -> JobSpec:
    """Raises Problem, with the path of the key in the body."""
    place = f"jobs[{index}]"
    if not isinstance(data, dict):
        raise invalid(f"{place} must be an object, not {shown(data)}", place)
    check_id(data.get("id"), f"{place}.id")
    if data.get("owner") not in (None, owner):
        raise invalid(f"{place}.owner must be {owner!r}, the owner of the set", f"{place}.owner")
    try:
        return from_json(JobSpec, {**data, "owner": owner})
    except InvalidJob as exc:
        raise invalid(f"{place}: {exc}", f"{place}.{exc.path}" if exc.path else place) from None
