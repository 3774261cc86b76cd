"""When other nodes' leases end, as one node sees it by looking repeatedly.

A lease ends by the server's clock, which may be set. A new lease counts as the server says, or as whole if the clock
was set since our last look. Then our own clock counts until the next renewal. So a step of the server's clock neither
ends a lease nor keeps a dead node alive.

No node can renew while the server is away, so after a gap between looks all leases count as whole. A first look follows
a gap too: a node buries only nodes watched for a whole lease (test_ends.py, test_outages_of_the_server.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ..._sharing import LEASE

SLACK = LEASE / 12
"""Seconds by which clocks may differ between looks, or a renewal be seen late."""

GAP = LEASE * 3 / 4
"""Seconds between looks after which all leases count as whole."""


@frozen(kw_only=True)
class Look:
    """One look at the leases, in seconds. `server`: by its clock."""

    asked: float
    answered: float
    server: float


class Ends:
    """Ends of leases by our clock, which counts while the machine sleeps."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[int, float]] = {}
        self._last: Look | None = None
        self.since = 0.0
        """The first answer after the last gap."""

    def lose_sight(self) -> None:
        """Note a failed look: the next one follows a gap."""
        self._last = None

    def look(self, look: Look, leases: Iterable[tuple[int, int, float]]) -> dict[int, float]:
        """Return the seconds left of each node's lease; negative: ended.

        `leases`: node, end in the server's microseconds, seconds left by its clock.
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
        """Return ended leases, with their ends in the server's microseconds."""
        found = {node: self._ends[node] for node in nodes if node in self._ends}
        return {node: until_us for node, (until_us, end) in found.items() if end < now}


def _least(last: Look | None, look: Look) -> float:
    """Return the least seconds left of a renewed lease. Infinite: unknown."""
    if last is None:
        return float("inf")
    passed = look.server - last.server
    if not look.asked - last.answered - SLACK <= passed <= look.answered - last.asked + SLACK:
        return float("inf")
    return LEASE - SLACK - (look.answered - last.asked)
