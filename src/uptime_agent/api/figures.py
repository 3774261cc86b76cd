"""The figures of the agent for Prometheus. What renders them is imported at the first question."""

# ruff: noqa: PLC0415

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from anyio.to_thread import run_sync

from scheduler.web import Answer, Ask, Nothing, Problem

from .inside import Inside

OPENMETRICS: Final = "application/openmetrics-text"


async def get_metrics(inside: Inside, ask: Ask[Nothing, None]) -> Answer:
    """Return the figures of the scheduler and its targets for Prometheus. In a fleet each node tells its own."""
    is_open = OPENMETRICS in ask.headers.get("accept", "")
    prepare = await run_sync(_prepared, is_open)
    here = [each for each in inside.targets if inside.is_here(each.name)]
    media, rendered = prepare(ask.s, here)
    return Answer(HTTPStatus.OK, headers={"Content-Type": media}, content=await run_sync(rendered))


def _prepared(is_open: bool) -> Callable[[Any, Any], tuple[str, Callable[[], bytes]]]:  # noqa: FBT001 - of run_sync
    """Import what renders. Raises Problem without prometheus_client."""
    try:
        from scheduler.metrics import CONTENT_TYPE, OPENMETRICS_CONTENT_TYPE, snapshot

        from ..exposition import figures_of, render
    except ModuleNotFoundError as exc:
        detail = f"/metrics needs the extra metrics ({exc}): pip install 'timerqueue[agent,web,metrics]'"
        raise Problem(HTTPStatus.NOT_IMPLEMENTED, "no-metrics", detail) from None

    def take(s: Any, targets: Any) -> tuple[str, Callable[[], bytes]]:
        """Take the figures, on the loop. Returns what renders them, in any thread."""
        taken, figures = snapshot(s), figures_of(targets)
        media = OPENMETRICS_CONTENT_TYPE if is_open else CONTENT_TYPE
        return media, lambda: render(taken, figures, openmetrics=is_open)

    return take
