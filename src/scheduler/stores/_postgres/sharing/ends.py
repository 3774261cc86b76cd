"""Ends: when the leases of the others end, as one agent sees it who looks at them again and again.

Each lease has its end in the server's time, and the clock of the server may be set. So what the server says counts for
a lease that is new to us, unless its clock was set since we looked last: then a lease that is new to us is a whole one,
for it was renewed in the meantime. From then on our own clock counts, until it is renewed again. So no lease ends by a
step of the server's clock, and nobody who is dead lives on by one (test_ends.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ..._sharing import LEASE

SLACK = LEASE / 12
"""Seconds that the two clocks may differ by from one look to the next, and that a renewal may take until it is seen."""


@frozen(kw_only=True)
class Look:
    """One look at the leases: when we asked, when we were answered, and what the server's clock said, in seconds."""

    asked: float
    answered: float
    server: float


class Ends:
    """The ends of leases, by our clock, which counts while the machine sleeps too."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[int, float]] = {}
        self._last: Look | None = None

    def look(self, look: Look, leases: Iterable[tuple[int, int, float]]) -> dict[int, float]:
        """Return the seconds that are left of each lease, by its agent; less than 0: it has ended.

        `leases`: each agent with the end of its lease in the server's microseconds, and the seconds until then by the
        server's clock.
        """
        least = _least(self._last, look)
        seen, self._ends, self._last = self._ends, {}, look
        for agent, until_us, left in leases:
            known = seen.get(agent)
            if known is None or known[0] != until_us:
                known = until_us, look.answered + (left if least <= left <= LEASE else LEASE)
            self._ends[agent] = known
        return {agent: end - look.answered for agent, (_, end) in self._ends.items()}

    def ended(self, agents: Iterable[int], now: float) -> dict[int, int]:
        """Return those of these agents whose leases had ended by `now`, with the server's ends of these."""
        found = {agent: self._ends[agent] for agent in agents if agent in self._ends}
        return {agent: until_us for agent, (until_us, end) in found.items() if end < now}


def _least(last: Look | None, look: Look) -> float:
    """How many seconds can be left of a lease that was renewed since the last look. Infinite: who knows."""
    if last is None:
        return float("-inf")
    passed = look.server - last.server
    if not look.asked - last.answered - SLACK <= passed <= look.answered - last.asked + SLACK:
        return float("inf")
    return LEASE - SLACK - (look.answered - last.asked)
