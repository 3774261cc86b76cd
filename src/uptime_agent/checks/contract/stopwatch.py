"""Times the parts of a check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from timerqueue import Clock


class Stopwatch:
    """Measures phases in seconds. `before`: the phases of a shared lookup.

    `completed`: phases measured here. `phase`: the present one.
    """

    def __init__(self, clock: Clock, before: Mapping[str, float] | None = None) -> None:
        self.clock = clock
        self.phases: dict[str, float] = dict(before or {})
        self.completed: set[str] = set()
        self.phase: str | None = None
        self.heard: str | None = None
        """The answer so far, in words."""
        self.doubt: str | None = None
        """Why we may have missed an answer."""
        self._began = self._phase_began = clock.monotonic()
        self._before = sum(self.phases.values())

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return self._before + self.clock.monotonic() - self._began

    def begin(self, phase: str) -> None:
        """Start a phase."""
        self.phase = phase
        self._phase_began = self.clock.monotonic()

    def end(self) -> None:
        """Complete the present phase. Repeated phases add up."""
        assert self.phase is not None
        seconds = self.clock.monotonic() - self._phase_began
        self.phases[self.phase] = self.phases.get(self.phase, 0.0) + seconds
        self.completed.add(self.phase)
        self.phase = None

    def note(self, phase: str) -> None:
        """Complete a phase that took no time."""
        self.begin(phase)
        self.end()

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        """Measure the body. If it raises, the phase stays incomplete."""
        self.begin(phase)
        yield
        self.end()
