"""The agent's own routes, in addition to those of `scheduler.web`.

A row says scope and audit, so none is open by mistake.

A new verb of the agent is a row here: its handler calls the verb, with the caller as the actor.
"""

from __future__ import annotations

from functools import partial, update_wrapper
from http import HTTPStatus
from typing import Any

from attrs import frozen

from scheduler.web import Answer, Ask, Nothing, Route, Routes

from ..text import our_version


@frozen(kw_only=True)
class About:
    """The agent's description of itself. `file`: the name of its configuration."""

    file: str | None
    began: float


def routes_of(about: About) -> Routes:
    """Return the table."""
    return (
        Route(
            method="GET", path="/v1/agent", scope="read", audit=None, handler=_with(get_agent, about), query=Nothing
        ),
    )  # fmt: skip


async def get_agent(about: About, ask: Ask[Nothing, None]) -> Answer:
    """Return which agent this is: its version, its file, and since when it runs."""
    found: dict[str, Any] = {
        "version": our_version(),
        "file": about.file,
        "began": about.began,
        "state": ask.s.state.value,
    }
    if ask.who is not None:
        found |= {"caller": ask.who.name, "scopes": sorted(ask.who.scopes)}
    return Answer(HTTPStatus.OK, found)


def _with(handler: Any, verbs: object) -> Any:
    """Give a handler what it acts on. Its first line still describes the route."""
    return update_wrapper(partial(handler, verbs), handler)
