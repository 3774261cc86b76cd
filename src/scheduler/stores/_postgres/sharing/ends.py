"""Ends: when the leases of the other nodes end, as one node sees it that looks at them again and again.

Each lease has its end in the server's time, and the clock of the server may be set. So the server's word counts for a
lease that is new to us, unless its clock was set since our last look: then a lease that is new to us is a whole one,
for it was renewed in the meantime. From then on our own clock counts, until the lease is renewed again. So no lease
ends by a step of the server's clock, and no dead node lives on by one.

While a server is away nobody can renew a lease. So a look that follows a gap says nothing of the leases that ended in
the gap: all of them count as whole from that look on. The first look of a new node follows a gap, too. Hence a node
buries nobody that it has not watched for the length of a whole lease (test_ends.py, test_outages.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ..._sharing import LEASE

SLACK = LEASE / 12
"""Seconds that the two clocks may differ by from one look to the next, and that a renewal may take until it is seen."""

GAP = LEASE * 3 / 4
"""Seconds from one look to the next from which on the leases that were not renewed count as whole again."""


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
        self.since = 0.0
        """When the first look was answered after the last gap."""

    def lose_sight(self) -> None:
        """Note that the store could not be asked: the next look follows a gap."""
        self._last = None

    def look(self, look: Look, leases: Iterable[tuple[int, int, float]]) -> dict[int, float]:
        """Return the seconds that are left of each lease, by its node; less than 0: it has ended.

        `leases`: each node with the end of its lease in the server's microseconds, and the seconds until then by the
        server's clock.
        """
        follows_a_gap = self._last is None or look.asked - self._last.answered > GAP
        if follows_a_gap:
            self._last, self.since = None, look.answered
        least = _least(self._last, look)
        seen, self._ends, self._last = self._ends, {}, look
        for node, until_us, left in leases:
            known = seen.get(node)
            if known is None or known[0] != until_us or follows_a_gap:
                known = until_us, look.answered + (left if least <= left <= LEASE else LEASE)
            self._ends[node] = known
        return {node: end - look.answered for node, (_, end) in self._ends.items()}

    def ended(self, nodes: Iterable[int], now: float) -> dict[int, int]:
        """Return those of these nodes whose leases had ended by `now`, with the server's ends of these."""
        found = {node: self._ends[node] for node in nodes if node in self._ends}
        return {node: until_us for node, (until_us, end) in found.items() if end < now}


def _least(last: Look | None, look: Look) -> float:
    """How many seconds can be left of a lease that was renewed since the last look. Infinite: nobody can tell."""
    if last is None:
        return float("inf")
    passed = look.server - last.server
    if not look.asked - last.answered - SLACK <= passed <= look.answered - last.asked + SLACK:
        return float("inf")
    return LEASE - SLACK - (look.answered - last.asked)
