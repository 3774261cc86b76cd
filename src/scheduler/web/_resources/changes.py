"""Who changed what, latest first."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from attrs import frozen

from ..._changes import Change
from ..._shape import to_json
from .._protocol import INSTANT, JSON, TEXT, Answer, Ask, given, whole
from .view import MASKED

MOST_CHANGES: Final = 500


@frozen(kw_only=True)
class ChangesAsked:
    """Which changes."""

    limit: int = given(whole(MOST_CHANGES), 100, "The most changes of this page.")
    cursor: datetime | None = given(INSTANT, None, "Only changes before this instant: `next` of the page before.")  # noqa: RUF009 - a field
    job: str | None = given(TEXT, None, "Only changes of this job, which may be gone.")
    actor: str | None = given(TEXT, None, "Only changes by this caller.")


async def list_changes(ask: Ask[ChangesAsked, None]) -> Answer:
    """List who changed what, latest first: jobs, pauses, sets and sizes of limits."""
    page, has_more = await _whole_instants(ask)
    pairs = [(name, value) for name, value in ask.pairs if name != "cursor"]
    following = "?" + urlencode([*pairs, ("cursor", to_json(page[-1].at))]) if has_more else None
    return Answer(HTTPStatus.OK, {"changes": [_view(each, ask) for each in page], "next": following})


async def _whole_instants(ask: Ask[ChangesAsked, None]) -> tuple[list[Change], bool]:
    """Return a page whose end parts no two changes of one instant, and whether more follow."""
    query = ask.query
    most = query.limit
    while True:
        found = await ask.s.changes(query.job, actor=query.actor, limit=most + 1, before=query.cursor)
        if len(found) <= most:
            return found, False
        page = [each for each in found if each.at != found[-1].at]
        if page:
            return page[:most], True
        most *= 2


def _view(change: Change, ask: Ask[Any, Any]) -> dict[str, JSON]:
    view: dict[str, JSON] = {**to_json(change), "job_id": change.job_id}
    if not ask.may("operate"):
        for name in ("before", "after"):
            view[name] = view[name] and {key: value for key, value in view[name].items() if key not in HIDDEN}
    return view


HIDDEN: Final = MASKED | {"text"}
"""Keys of values that may hold arguments; "text": a row that was written by hand."""
