"""The list of jobs: filtered, sorted, a page at a time. Between pieces the event loop goes on."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Final
from urllib.parse import urlencode

from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from attrs import frozen

from ..._jobs import Handle as Job
from ..._values import JobState
from .._protocol import CURSOR, JSON, NAMES, TEXT, TEXTS, Answer, Ask, choice, choices, given, invalid, optional, whole
from .view import JOB_KEYS, job_view

MOST: Final = 500
"""Jobs of a page."""

MOST_BYTES: Final = 2 * 1024 * 1024
"""Bytes at which a page ends, though more jobs would fit."""

PIECE: Final = 1_000
"""Jobs between two turns of the event loop."""

Key = Any
"""The place of a job in an order: a text or a tuple. It has the id, so that all places differ."""


def _by_name(job: Job) -> tuple[bool, str, str]:
    return (job.name is None, job.name or "", job.id)


def _by_next_start(job: Job) -> tuple[bool, float, str]:
    start = job.next_start
    return (start is None, 0.0 if start is None else start.timestamp(), job.id)


_SORTS: Final[Mapping[str, Callable[[Job], Key]]] = {
    "id": attrgetter("id"),
    "name": _by_name,
    "next_start": _by_next_start,
}
_KINDS: Final = {"id": str, "name": [bool, str, str], "next_start": [bool, float, str]}
"""The types in a key of each order."""

SORTS: Final = tuple(word for name in _SORTS for word in (name, f"-{name}"))


@frozen(kw_only=True)
class Filter:
    """Which jobs."""

    q: str | None = given(TEXT, None, "Only jobs with this text in their id, name or tags, in any case.")
    tag: tuple[str, ...] = given(TEXTS, (), "Only jobs with this tag. Repeated: with all of them.")
    state: tuple[JobState, ...] = given(choices(JobState), (), "Only jobs in this state. Repeated: in one of them.")
    owner: str | None = given(TEXT, None, 'Only jobs of this owner; "code": jobs that code has added.')

    @property
    def is_narrow(self) -> bool:
        """Whether some jobs are not listed."""
        return bool(self.tag or self.state) or self.owner is not None or self.q is not None

    def admits(self, job: Job) -> bool:
        """Return whether the job is listed."""
        if self.tag and not job.tags.issuperset(self.tag):
            return False
        if self.owner is not None and (job.owner or "code") != self.owner:
            return False
        if self.state and job.state not in self.state:
            return False
        return self.q is None or _has_text(job, self.q.casefold())


@frozen(kw_only=True)
class Listing(Filter):
    """The query of a list: which jobs, in which order, and which of their keys."""

    limit: int = given(whole(MOST), 100, "The most jobs of this page.")
    cursor: str | None = given(CURSOR, None, "Where the page begins: `next` of the page before.")
    sort: str = given(choice(SORTS), "id", 'What jobs are sorted by; "-" before it reverses the order.')
    fields: tuple[str, ...] | None = given(optional(NAMES), None, "Only these keys of each job, with commas between.")

    @property
    def is_reversed(self) -> bool:
        return self.sort.startswith("-")

    @property
    def key(self) -> Callable[[Job], Key]:
        """Return what gives a job its place in the list."""
        return _SORTS[self.sort.removeprefix("-")]


def _has_text(job: Job, text: str) -> bool:
    return any(text in each.casefold() for each in (job.id, job.name or "", *job.tags))


async def list_jobs(ask: Ask[Listing, None]) -> Answer:
    """List jobs, a page at a time."""
    query = ask.query
    after = None if query.cursor is None else _read_cursor(query)
    _check_fields(query)
    page = await first_of(ask.s.jobs(), query, after, query.limit + 1)
    found = await _views([job for _, job in page[: query.limit]], ask)
    following = _next_page(ask, page[len(found) - 1][0]) if len(found) < len(page) else None
    return Answer(HTTPStatus.OK, {"jobs": found, "next": following})


async def _views(jobs: list[Job], ask: Ask[Listing, None]) -> list[dict[str, JSON]]:
    """Return views of the jobs, or of the first ones if all are too large for a page. The event loop goes on."""
    found: list[dict[str, JSON]] = []
    size = 0
    keys = JOB_KEYS if ask.query.fields is None else ask.query.fields
    has_arguments = ask.may("operate") and not {"spec", "spec_error"}.isdisjoint(keys)
    for job in jobs:
        view = await run_sync(job_view, job, ask, keys) if has_arguments else job_view(job, ask, keys)
        found.append(view)
        size += len(json.dumps(found[-1]))
        if size >= MOST_BYTES:
            break
        await checkpoint()
    return found


async def first_of(jobs: list[Job], query: Listing, after: Key | None, count: int) -> list[tuple[Key, Job]]:
    """Return the first jobs behind that place, in order."""
    best: list[tuple[Key, Job]] = []
    key, rest = query.key, iter(jobs)
    while piece := list(islice(rest, PIECE)):
        listed = [*filter(query.admits, piece)] if query.is_narrow else piece
        bound = best[-1][0] if len(best) == count else None
        best += _between(zip(map(key, listed), listed, strict=True), after, bound, is_reversed=query.is_reversed)
        best.sort(key=itemgetter(0), reverse=query.is_reversed)
        del best[count:]
        await checkpoint()
    return best


def _between(
    pairs: Iterable[tuple[Key, Job]], after: Key | None, before: Key | None, *, is_reversed: bool
) -> list[tuple[Key, Job]]:
    """Leave out what lies outside. None: no bound."""
    low, high = (before, after) if is_reversed else (after, before)
    if low is None:
        return [pair for pair in pairs if pair[0] < high] if high is not None else [*pairs]
    return [pair for pair in pairs if pair[0] > low and (high is None or pair[0] < high)]


def _check_fields(query: Listing) -> None:
    for name in query.fields or ():
        if name not in JOB_KEYS:
            raise invalid(f"fields: a job has no key {name[:100]!r}: it has {', '.join(JOB_KEYS)}", "fields")


# -- cursors -----------------------------------------------------------------------------------------------------------


def _next_page(ask: Ask[Listing, None], last: Key) -> str:
    """Return a relative link to the next page."""
    place = json.dumps([ask.query.sort, last], ensure_ascii=False, separators=(",", ":"))
    cursor = urlsafe_b64encode(place.encode("utf-8", "surrogatepass")).decode().rstrip("=")
    pairs = [(name, value) for name, value in ask.pairs if name != "cursor"]
    return "?" + urlencode([*pairs, ("cursor", cursor)])


def _read_cursor(query: Listing) -> Key:
    """Raises Problem for a cursor that no page has given, or that is for another order."""
    text = query.cursor or ""
    try:
        sort, key = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError, RecursionError):
        sort, key = None, None
    kinds = [type(each) for each in key] if isinstance(key, list) else type(key)
    if sort != query.sort or kinds != _KINDS[query.sort.removeprefix("-")]:
        raise invalid(f"cursor must be what the page before gave, with the same sort, not {text[:100]!r}", "cursor")
    return tuple(key) if isinstance(key, list) else key


LISTED: Final[JSON] = {
    "type": "object",
    "properties": {
        "jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
        "next": {"type": ["string", "null"], "description": "A relative link to the next page."},
    },
}
