"""One job: read, put, changed, removed, its runs, and its next starts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from anyio.to_thread import run_sync
from attrs import define, frozen

from schedule import shown

from ..._jobs import Handle as Job
from ..._memory import Record
from ..._scheduler import Scheduler
from ..._sets import Synced
from ..._shape import JobSpec, from_json, options_text, read_json, to_json
from ..._values import OPTIONS, JobState
from .._protocol import (
    INSTANT,
    JSON,
    TEXT,
    Answer,
    Ask,
    Nothing,
    given,
    invalid,
    linked,
    of_only_job,
    problem_of,
    whole,
)
from .view import etag_of, job_view, record_view, tag_of, why_view
from .writes import API, changed, check_conditions, check_id, check_owner, refuse_others, refuse_unless_running

MOST_RUNS: Final = 500
MOST_STARTS: Final = 100


@frozen(kw_only=True)
class Owned:
    """Whose job is written."""

    owner: str = given(TEXT, API, "Whose the job is: a word that the client chooses for its jobs.")


@frozen(kw_only=True)
class RunsAsked:
    """A page of records."""

    limit: int = given(whole(MOST_RUNS), 100, "The most records of this page.")
    before: datetime | None = given(INSTANT, None, "Only ticks due before this instant.")  # noqa: RUF009 - a field


@frozen(kw_only=True)
class StartsAsked:
    """How many starts are foreseen."""

    count: int = given(whole(MOST_STARTS), 10, "How many starts.")


async def get_job(ask: Ask[Nothing, None]) -> Answer:
    """Return a job: its definition, its state and its counts."""
    job = ask.s.get(ask.id)
    return await run_sync(lambda: Answer(HTTPStatus.OK, job_view(job, ask), _tagged(job, ask)))  # both may take long


async def put_job(ask: Ask[Owned, JSON]) -> Answer:
    """Create a job, or replace its definition. The same body leads to the same job.

    201: created. 200: replaced. 204: the job was so already.
    """
    owner = _owner_of(ask)
    data = {**ask.body, "id": ask.body.get("id", ask.id), "owner": owner}
    return await _put(ask, lambda _: _spec_of(data, ask.id), owner)


async def patch_job(ask: Ask[Owned, JSON]) -> Answer:
    """Change some keys of a job's definition. null takes a key back to its default.

    200: changed. 204: the job was so already.
    """
    owner = _owner_of(ask)

    def patched(present: Job | None) -> JobSpec:
        job = ask.s.get(ask.id) if present is None else present
        return _spec_of({"id": ask.id, **merged(_said(job.spec), ask.body), "owner": owner}, ask.id)

    return await _put(ask, patched, owner)


async def delete_job(ask: Ask[Owned, None]) -> Answer:
    """Remove a job, and cancel its run."""
    owner = check_owner(ask.query.owner)
    refuse_unless_running(ask.s)

    def remove() -> None:
        job = ask.s.get(ask.id)
        refuse_others(job, owner)
        check_conditions(ask, job)
        job.remove()

    await changed(ask, remove)
    return Answer(HTTPStatus.NO_CONTENT)


async def list_runs(ask: Ask[RunsAsked, None]) -> Answer:
    """List how the ticks of a job ended, latest first. The job may be gone."""
    query = ask.query
    page, has_more = await _whole_instants(ask, query.limit, query.before)
    last = to_json(page[-1].due) if page else None
    following = f"?limit={query.limit}&before={last}" if has_more else None
    return Answer(HTTPStatus.OK, {"runs": [record_view(each, ask) for each in page], "next": following})


async def list_starts(ask: Ask[StartsAsked, None]) -> Answer:
    """List the next regular starts of a job."""
    job = ask.s.get(ask.id)
    return Answer(HTTPStatus.OK, {"job_id": job.id, "starts": to_json(job.next_starts(ask.query.count))})


def read_definition(body: JSON) -> JSON:
    """Return the body of a put or a patch. Raises Problem."""
    if not isinstance(body, dict):
        raise invalid(f"the body must be an object with the keys of a job, not {shown(body)}")
    return body


# -- writes ------------------------------------------------------------------------------------------------------------


@define
class _Put:
    """The outcome of a put. `job`: None if its last start came at once, and it is over. `tag`: of its definition."""

    spec: JobSpec
    synced: Synced
    job: Job | None
    tag: str | None = None

    def look(self) -> None:
        if self.job is not None:
            self.tag = tag_of(self.job)


async def _put(ask: Ask[Any, Any], spec_of: Callable[[Job | None], JobSpec], owner: str) -> Answer:
    """`spec_of`: is called in a thread, with the present job."""
    refuse_unless_running(ask.s)

    def put() -> _Put:
        present = _present(ask.s, ask.id)
        if present is not None:
            refuse_others(present, owner)
        check_conditions(ask, present)
        spec = spec_of(present)
        synced = _synced(ask.s, spec, owner)
        return _Put(spec, synced, _present(ask.s, ask.id), etag_of(spec))

    made = await changed(ask, put, _Put.look, id=ask.id)
    if (now := _present(ask.s, ask.id)) is not None:
        refuse_others(now, owner)  # another node may have put it at the same moment
    tagged = {"ETag": made.tag} if made.tag is not None and ask.may("admin") else {}
    if made.synced.unchanged:
        return Answer(HTTPStatus.NO_CONTENT, None, tagged)
    status = HTTPStatus.CREATED if made.synced.added else HTTPStatus.OK
    view = _view_of_gone(made.spec) if made.job is None else await run_sync(job_view, made.job, ask)
    return Answer(status, view, {**tagged, "Location": linked(ask.id)})


def _view_of_gone(spec: JobSpec) -> JSON:
    return {"id": spec.id, "spec": to_json(spec), "state": JobState.GONE.value}


def _synced(s: Scheduler, spec: JobSpec, owner: str) -> Synced:
    try:
        synced = s.sync([spec], owner=owner, prune=False)
    except Exception as exc:
        if (problem := problem_of(exc)) is None:
            raise
        raise of_only_job(problem) from exc
    if synced.ended:
        raise invalid(f"schedule: {spec.schedule} has no start after now", "schedule")
    return synced


def _present(s: Scheduler, id: str) -> Job | None:
    return s.get(id) if id in s else None


def _owner_of(ask: Ask[Owned, JSON]) -> str:
    """Return the owner that the query or the body names."""
    asked, said = ask.query.owner, ask.body.get("owner")
    if said is None:
        return check_owner(asked)
    if not isinstance(said, str) or asked not in {API, said}:
        raise invalid(f"owner is {asked!r} in the query, and {said!r:.200} in the body", "owner")
    return check_owner(said)


def _spec_of(data: JSON, id: str) -> JobSpec:
    if data["id"] != id:
        raise invalid(f"id must be the id in the path, {id[:200]!r}, not {data['id']!r:.200}", "id")
    check_id(id)
    return from_json(JobSpec, data)


def _said(spec: JobSpec) -> JSON:
    """Return a spec without defaults: `overlap` decides that of `max_running`."""
    said = read_json(options_text(spec.policy, spec.inline))
    return {name: value for name, value in to_json(spec).items() if name not in OPTIONS or name in said}


def merged(target: JSON, patch: JSON) -> JSON:
    """Apply a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _tagged(job: Job, ask: Ask[Any, Any]) -> dict[str, str]:
    """Only callers who may write get a tag: it is a hash of arguments, too."""
    tag = tag_of(job) if ask.may("admin") else None
    return {} if tag is None else {"ETag": tag}


# -- reads -------------------------------------------------------------------------------------------------------------


async def _whole_instants(ask: Ask[Any, Any], limit: int, before: datetime | None) -> tuple[list[Record], bool]:
    """Return a page whose end parts no two ticks of one instant, and whether more follow."""
    most = limit
    while True:
        found = await ask.s.history(ask.id, limit=most + 1, before=before)
        if len(found) <= most:
            return found, False
        page = [each for each in found if each.due != found[-1].due]
        if page:
            return page[:most], True
        most *= 2


@frozen(kw_only=True)
class WhyAsked:
    """Which instant is meant."""

    at: datetime | None = given(INSTANT, None, "The instant. None: the last due one, or why it does not start now.")  # noqa: RUF009 - a field


async def get_why(ask: Ask[WhyAsked, None]) -> Answer:
    """Say why a job did or did not run at an instant. The job may be gone."""
    return Answer(HTTPStatus.OK, why_view(await ask.s.why(ask.id, ask.query.at), ask))
