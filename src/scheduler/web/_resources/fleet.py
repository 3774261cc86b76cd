"""The nodes of a fleet, and what runs and waits."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import Final

from anyio.to_thread import run_sync
from attrs import frozen

from ..._scheduler import Scheduler
from ..._shape import to_json
from .._protocol import JSON, Answer, Ask, Nothing, given, whole

MOST_RUNS: Final = 500


@frozen(kw_only=True)
class QueueAsked:
    """How many runs are listed."""

    limit: int = given(whole(MOST_RUNS), 100, "The most runs, those that go on before those that wait.")


async def get_fleet(ask: Ask[Nothing, None]) -> Answer:
    """Return the nodes that share the store: as this node sees them, and as the store says.

    "fleet" is null without other nodes, "store" without a store that knows its nodes.
    """
    found = to_json(ask.s.statistics().fleet)
    return Answer(HTTPStatus.OK, {"fleet": found, "store": to_json(await ask.s.fleet())})


async def get_queue(ask: Ask[QueueAsked, None]) -> Answer:
    """Return what runs and what waits in this process, the oldest first, and the use of the outside queue."""
    return Answer(HTTPStatus.OK, await run_sync(_queue_of, ask.s, ask.query.limit))  # many runs may wait


def _queue_of(s: Scheduler, limit: int) -> dict[str, JSON]:
    runs, statistics = s.runs(), s.statistics()
    states = Counter(run.state for run in runs)
    return {
        "running": states["running"],
        "waiting": states["waiting"],
        "waiting_for": dict(Counter(run.waits_for for run in runs if run.waits_for is not None)),
        "runs": to_json(runs[:limit]),
        "queue": to_json(statistics.queue),
        "timers": to_json(statistics.timers),
    }
