"""Belief: until when we rely on our lease. Whoever begins a run asks, and whoever hears that we were buried doubts."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event


class Belief:
    """Our belief that nobody else has what is ours. `now`: seconds that count while the machine sleeps too. Any thread.

    `until`: the end of it, by that clock. `hint` is set when the store is to be asked soon.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.until = 0.0
        self.hint = Event()

    def is_held(self) -> bool:
        """Whether nobody else can have what is ours, as far as we know."""
        return self.now() < self.until

    def doubt(self) -> None:
        """Begin nothing before the store has been asked: there is reason to believe that we have been buried."""
        self.until = 0.0
        self.hint.set()
