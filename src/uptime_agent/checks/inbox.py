"""The inbox of a push target: its signals until they are judged, and whether one may have been missed.

What lies here is in memory alone. It is judged by the next run of its target, which the store may keep waiting.
"""

from __future__ import annotations

import enum
import math
from collections import deque
from datetime import datetime
from typing import Final, Protocol, TypeVar

from attrs import evolve, frozen

T = TypeVar("T")

MOST_SIGNALS: Final = 20
"""Signals of one target that wait to be taken out; older ones are counted and dropped."""

MOST_RUNS: Final = 100
"""Runs with an id of which something is remembered: when they began, or what they said last."""

SENT_AGAIN_WITHIN: Final = 30.0
"""Seconds in which a signal that says the same of the same run is the same one, sent again."""

ROUNDING: Final = 0.5
"""Seconds by which the instants of a deadline and of its run may differ."""


class Said(enum.Enum):
    """The meaning of a signal."""

    SUCCESS = "success"
    START = "start"
    FAIL = "fail"
    LOG = "log"


@frozen(kw_only=True)
class Signal:
    """A signal of a target, at an instant in UTC seconds. `run`: which run of it; `code`: how that exited."""

    said: Said
    at: float
    run: str | None = None
    code: int | None = None
    log: str | None = None
    lasted: float | None = None
    """Seconds since the start of that run was told."""


class Ears(Protocol):
    """The listeners of a port where signals come in."""

    def missed(self, peer: str | None) -> int:
        """Count what may have been a signal of that peer and was not read. None: nobody knows the target's peer."""


class Inbox:
    """The signals of one target that nobody has taken out yet, and what is known of those that may still come."""

    def __init__(self) -> None:
        self._waiting: deque[Signal] = deque(maxlen=MOST_SIGNALS)
        self._starts: dict[str, float] = {}
        self._latest: dict[str, tuple[Signal, float]] = {}
        """The last signal of each run, and when it was sent last as long as it waited."""
        self._deadline = -math.inf
        self._ears: Ears | None = None
        self._peer: str | None = None
        self._missed_before = 0
        self._is_given_time = False

    def hear_by(self, ears: Ears) -> None:
        """Let these listen for its signals from now on."""
        if self._ears is not ears:
            self._ears = ears
            self._missed_before = ears.missed(self._peer)

    def put(self, signal: Signal, peer: str | None = None) -> Signal:
        """Put in a signal that has come from that peer. Return it as it lies there: told how long its run lasted, if
        the start of that was told; or the one that it repeats, for whoever does not hear OK sends it again.
        """
        if signal.said is not Said.LOG:  # which is no sign of life
            self._peer = peer
            self._missed_before = self._missed
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
        """The signal that this one repeats: the last one of the same run, which says the same. None: it is a new one.

        Some give all their runs the same id: so this is for signals that wait, and for a short while after that.
        """
        before, sent = self._latest.get(signal.run or "", (None, 0.0))
        if before is None or (before.said, before.code, before.log) != (signal.said, signal.code, signal.log):
            return None
        if self.holds(before):
            _remember(self._latest, signal.run or "", (before, signal.at))
            return before
        return before if abs(signal.at - sent) <= SENT_AGAIN_WITHIN else None

    def holds(self, signal: Signal) -> bool:
        """Whether a signal lies there still."""
        return any(each is signal for each in self._waiting)

    @property
    def is_filled(self) -> bool:
        """Whether any signal lies there."""
        return bool(self._waiting)

    def take(self) -> list[Signal]:
        """Take out what lies there, oldest first."""
        found = list(self._waiting)
        self._waiting.clear()
        return found

    def expect(self, deadline: datetime) -> None:
        """Take note of the deadline of the next signal: who finds nothing here before that has found no silence."""
        self._deadline = deadline.timestamp()

    def is_early(self, due: float) -> bool:
        """Whether a run that was due then, in UTC seconds, was asked for, and is not the one of the deadline."""
        return due < self._deadline - ROUNDING

    @property
    def _missed(self) -> int:
        return 0 if self._ears is None else self._ears.missed(self._peer)

    def found_silent(self) -> bool:
        """Find that nothing has come until the deadline: True. False: something may have been turned away since the
        last signal, or since the deadline before; then the target is given time until the next one.
        """
        self._latest.clear()
        before, self._missed_before = self._missed_before, self._missed
        self._is_given_time = self._missed_before > before
        return not self._is_given_time

    def is_given_time(self) -> bool:
        """Whether the target was given time until its next deadline. It is told once."""
        found, self._is_given_time = self._is_given_time, False
        return found


def _remember(known: dict[str, T], run: str, value: T) -> None:
    """Remember something of a run as the latest. Of many the oldest is forgotten."""
    known.pop(run, None)
    while len(known) >= MOST_RUNS:
        del known[next(iter(known))]
    known[run] = value
