"""Signals for other nodes' targets, passed on through the store.

    here            a job of the target, stored before OK
    at its node     the job ends once the signal is judged

If that node dies, the next owner tries again. Lives on the event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from schedule import At
from scheduler import InvalidJob, Retry, Scheduler

from ..checks import Said, Signal

TASK: Final = "signal"

LIMIT: Final = "signals"
"""Not the limit of checks, as each job waits for a check."""

MAX_AT_ONCE: Final = 8
"""Signals judged at a time."""

AHEAD_S: Final = (0.001, 1.0, 60.0)
"""Seconds, one after another: a start must be in the future."""

PRIORITY: Final = 6
RETRY: Final = Retry.exponential("1s", cap="1m", max_retries=None)

Take = Callable[[str, Signal, str], Awaitable[None]]
"""Takes a target's name, its signal and the peer; returns once judged."""


class Handing:
    """Passes signals on between nodes. `now`: UTC seconds since 1970."""

    def __init__(self, scheduler: Scheduler, take: Take, now: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._take = take
        self._now = now
        scheduler.register(TASK, self._run)

    def hand_on(self, name: str, signal: Signal, peer: str) -> None:
        """Leave a signal to its target's node. A repetition is the same job.

        A thread that waits for the processor may find that the start is over: then it gives a later one.
        """
        for ahead in AHEAD_S[:-1]:
            with suppress(InvalidJob):
                self._add(name, signal, peer, ahead)
                return
        self._add(name, signal, peer, AHEAD_S[-1])

    def _add(self, name: str, signal: Signal, peer: str, ahead: float) -> None:
        self._scheduler.add(
            TASK,
            At(datetime.fromtimestamp(self._now() + ahead, UTC)),
            id=_id_of(name, signal),
            args=(name, _values_of(signal), peer),
            needs=LIMIT,
            priority=PRIORITY,
            retry=RETRY,
            delivery="at_least_once",
            place=name,
            tags=(TASK,),
            on_conflict="keep",
        )

    async def _run(self, name: str, values: Mapping[str, Any], peer: str) -> dict[str, str]:
        await self._take(name, _signal_of(values), peer)
        return {"target": name, "signal": str(values["said"])}


def _id_of(name: str, signal: Signal) -> str:
    which = signal.at if signal.run is None else signal.run
    text = repr((name, signal.said.value, which, signal.code, signal.log))
    return f"{TASK}:{sha256(text.encode()).hexdigest()[:32]}"


def _values_of(signal: Signal) -> dict[str, Any]:
    values = {"run": signal.run, "code": signal.code, "log": signal.log}
    return {"said": signal.said.value, "at": signal.at} | {
        key: each for key, each in values.items() if each is not None
    }


def _signal_of(values: Mapping[str, Any]) -> Signal:
    """Raises ValueError, TypeError or KeyError."""
    return Signal(
        said=Said(values["said"]),
        at=float(values["at"]),
        run=values.get("run"),
        code=values.get("code"),
        log=values.get("log"),
    )
