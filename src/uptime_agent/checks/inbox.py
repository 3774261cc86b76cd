"""The inbox of a push target: signals that wait, in memory, and whether one may have been lost."""

from __future__ import annotations

import enum
import math
from collections import deque
from datetime import datetime
from typing import Final, Protocol, TypeVar

from attrs import evolve, frozen

T = TypeVar("T")

MOST_SIGNALS: Final = 20
"""Of one target; older signals are dropped."""

MOST_RUNS: Final = 100

SENT_AGAIN_WITHIN: Final = 30.0
"""Seconds in which an equal signal is a repetition."""

ROUNDING: Final = 0.5
"""Seconds between a deadline and its run's due instant."""


class Said(enum.Enum):
    """A signal's meaning."""

    SUCCESS = "success"
    START = "start"
    FAIL = "fail"
    LOG = "log"


@frozen(kw_only=True)
class Signal:
    """A target's signal. `at`: UTC seconds. `run`: its own run; `code`: the exit code."""

    said: Said
    at: float
    run: str | None = None
    code: int | None = None
    log: str | None = None
    lasted: float | None = None
    """Seconds since that run's start."""


class Losses(Protocol):
    """Requests that may have been signals."""

    @property
    def count(self) -> int:
        """Never falls."""


class Ears(Protocol):
    """The port where signals come in."""

    def losses(self, peer: str | None) -> Losses:
        """Return a peer's lost requests, if it is known. None: a stranger's."""


class Inbox:
    """One target's waiting signals."""

    def __init__(self) -> None:
        self._waiting: deque[Signal] = deque(maxlen=MOST_SIGNALS)
        self._starts: dict[str, float] = {}
        self._latest: dict[str, tuple[Signal, float]] = {}
        self._deadline = -math.inf
        self._ears: Ears | None = None
        self._losses: Losses | None = None
        self._lost_before = 0
        self._is_given_time = False

    def hear_by(self, ears: Ears) -> None:
        """Set the port for its signals."""
        if self._ears is not ears:
            self._ears = ears
            self._watch(ears, None)

    def put(self, signal: Signal, peer: str | None = None) -> Signal:
        """Add a signal and return it, with the time since its run's start.

        A repetition, by a sender that heard no OK, returns the earlier signal.
        """
        if self._ears is not None and signal.said is not Said.LOG:  # which is no sign of life
            self._watch(self._ears, peer)
        repeated = self._repeated(signal)
        if repeated is not None:
            return repeated
        if signal.run is not None and signal.said is Said.START:
            _remember(self._starts, signal.run, signal.at)
        elif signal.run is not None and signal.said is not Said.LOG and signal.run in self._starts:
            signal = evolve(signal, lasted=max(signal.at - self._starts.pop(signal.run), 0.0))
        if signal.run is not None:
            _remember(self._latest, signal.run, (signal, signal.at))
        self._waiting.append(signal)
        return signal

    def _repeated(self, signal: Signal) -> Signal | None:
        """Some senders give all runs one id, so only waiting or recent signals can be repeated."""
        before, sent = self._latest.get(signal.run or "", (None, 0.0))
        if before is None or (before.said, before.code, before.log) != (signal.said, signal.code, signal.log):
            return None
        if self.holds(before):
            _remember(self._latest, signal.run or "", (before, signal.at))
            return before
        return before if abs(signal.at - sent) <= SENT_AGAIN_WITHIN else None

    def holds(self, signal: Signal) -> bool:
        """Whether the signal still waits."""
        return any(each is signal for each in self._waiting)

    @property
    def is_filled(self) -> bool:
        """Whether any signal waits."""
        return bool(self._waiting)

    def take(self) -> list[Signal]:
        """Take all signals out, oldest first."""
        found = list(self._waiting)
        self._waiting.clear()
        return found

    def expect(self, deadline: datetime) -> None:
        """Note the deadline. An empty inbox before it is no silence."""
        self._deadline = deadline.timestamp()

    def is_early(self, due: float) -> bool:
        """Whether a run due then (UTC seconds) precedes the deadline: a person asked for it."""
        return due < self._deadline - ROUNDING

    def _watch(self, ears: Ears, peer: str | None) -> None:
        self._losses = ears.losses(peer)
        self._lost_before = self._losses.count

    def found_silent(self) -> bool:
        """Judge an empty inbox at the deadline. False: a signal may have been refused, so the target has until the
        next.
        """
        self._latest.clear()
        before, self._lost_before = self._lost_before, 0 if self._losses is None else self._losses.count
        self._is_given_time = self._lost_before > before
        return not self._is_given_time

    def is_given_time(self) -> bool:
        """Whether the target got time until its next deadline. True once."""
        found, self._is_given_time = self._is_given_time, False
        return found


def _remember(known: dict[str, T], run: str, value: T) -> None:
    known.pop(run, None)
    while len(known) >= MOST_RUNS:
        del known[next(iter(known))]
    known[run] = value
