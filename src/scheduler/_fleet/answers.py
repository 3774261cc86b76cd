"""The outcomes of requested runs, from their ticks' records, whichever node wrote them.

They are read while a caller waits. On the loop.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from logging import getLogger

from .._commits import Writer
from .._journal import sound_tick
from .._loop import Core
from .._plan import instant_of
from .._values import MissedReason, Outcome, RunEnded, RunMissed
from ..stores import RUNNING, Answer, Sharing, StoredTick

logger = getLogger(__name__)


class RequestAnswers:
    def __init__(self, sharing: Sharing, writer: Writer, core: Core) -> None:
        self._sharing = sharing
        self._writer = writer
        self._core = core
        self._journal = core.journal
        self._is_asking = False

    def look(self) -> None:
        if self._is_asking or not self._journal.awaited:
            return
        numbers = self._journal.asked_for()
        if numbers:
            self._is_asking = True
            self._writer.submit(lambda: self._sharing.answers(numbers), self._answered)

    def _answered(self, answers: Sequence[Answer] | None, error: Exception | None) -> None:
        self._is_asking = False
        if error is not None:
            logger.info("what has become of requests cannot be read now: %s", error)
        for answer in answers or ():
            asked = self._journal.awaited.get(answer.number)
            end = None if asked is None else end_of(answer, asked.job_id, self._now_us())
            if asked is not None and end is not None:
                del self._journal.awaited[answer.number]
                asked.settle(end)

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


def end_of(answer: Answer, job_id: str, now_us: int) -> RunEnded | RunMissed | None:
    """None: the run has not ended. `now_us`: the due instant without a tick."""
    due_us = now_us if answer.due_us is None else answer.due_us
    if answer.reason is not None:
        return _missed(job_id, due_us, _reason(answer.reason))
    if answer.tick is None:
        return _missed(job_id, due_us, MissedReason.REMOVED) if answer.is_gone else None
    tick, _ = sound_tick(answer.tick)
    if tick is not None and (tick.outcome == RUNNING or answer.comes_again):
        return None
    if tick is None or tick.outcome == Outcome.MISSED.value:
        return _missed(job_id, due_us, _reason(None if tick is None else tick.reason))
    return _ended(tick)


def _reason(text: str | None) -> MissedReason:
    """Return STOPPED if the reason is missing, or another version's."""
    return next((reason for reason in MissedReason if reason.value == text), MissedReason.STOPPED)


def _missed(job_id: str, due_us: int, reason: MissedReason) -> RunMissed:
    due = instant_of(due_us)
    return RunMissed(job_id, due, due, 1, reason)


def _ended(tick: StoredTick) -> RunEnded:
    started_us, ended_us = tick.started_us or tick.due_us, tick.ended_us or tick.due_us
    return RunEnded(
        tick.job_id,
        instant_of(tick.due_us),
        instant_of(started_us),
        instant_of(ended_us),
        tick.attempt,
        tick.lateness or 0.0,
        (ended_us - started_us) * 1e-6,
        Outcome(tick.outcome),
        tick.error,
        tick.trace,
        () if tick.result is None else (json.loads(tick.result),),
    )
