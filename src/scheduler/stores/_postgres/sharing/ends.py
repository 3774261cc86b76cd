"""Ends: when the leases of other nodes end, as one node sees it by looking again and again.

Each lease has its end in the server's time, and the server's clock may be set. So the server's word counts for a lease
that is new to us, unless its clock was set since our last look. Then a new lease is a whole one, for it was renewed
meanwhile. From then on our own clock counts, until the lease is renewed again. So a step of the server's clock neither
ends a lease nor keeps a dead node alive.

While a server is away no node can renew its lease. So a look after a gap says nothing of leases that ended in the gap:
all of them count as whole from that look on. A new node's first look follows a gap, too. So a node buries only nodes
that it has watched for a whole lease (test_ends.py, test_outages.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ..._sharing import LEASE

SLACK = LEASE / 12
"""Seconds by which two clocks may differ between looks, and that a renewal may take to be seen."""

GAP = LEASE * 3 / 4
"""Seconds between two looks that make a gap: leases that were not renewed count as whole again."""


@frozen(kw_only=True)
class Look:
    """One look at the leases, in seconds: when we asked, when we were answered, and the server's clock."""

    asked: float
    answered: float
    server: float


class Ends:
    """The ends of leases, by our clock, which counts while the machine sleeps too."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[int, float]] = {}
        self._last: Look | None = None
        self.since = 0.0
        """When the first look after the last gap was answered."""

    def lose_sight(self) -> None:
        """Note that the store could not be asked: the next look follows a gap."""
        self._last = None

    def look(self, look: Look, leases: Iterable[tuple[int, int, float]]) -> dict[int, float]:
        """Return the seconds left of each lease, by its node; less than 0: it has ended.

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
        """Return the nodes whose leases had ended by `now`, with the ends by the server's clock."""
        found = {node: self._ends[node] for node in nodes if node in self._ends}
        return {node: until_us for node, (until_us, end) in found.items() if end < now}


def _least(last: Look | None, look: Look) -> float:
    """Return the least seconds left of a lease renewed since the last look. Infinite: unknown."""
    if last is None:
        return float("inf")
    passed = look.server - last.server
    if not look.asked - last.answered - SLACK <= passed <= look.answered - last.asked + SLACK:
        return float("inf")
    return LEASE - SLACK - (look.answered - last.asked)
