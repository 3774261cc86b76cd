"""Polls: the node that has a target collects the findings of the nodes that check it.

No node calls a vote: all know when a target is due, and which nodes check it then. The node that has the target may be
one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler import current_run
from scheduler.stores import Peer, Store, View, Voting, capabilities
from timerqueue import Clock

from ..checks import CheckResult, Status
from .choice import chosen
from .rule import Quorum
from .vote_exchange import VoteExchange


class Poll:
    """The polls of one node. `view`: the present nodes; None: unknown."""

    def __init__(self, voting: Voting, view: Callable[[], View | None], clock: Clock) -> None:
        self._vote_exchange = VoteExchange(voting, self._epoch, clock)
        self._view = view
        self._clock = clock

    async def run(self) -> None:
        """Write our votes and read others until cancelled."""
        await self._vote_exchange.run()

    def is_asked(self, name: str, quorum: Quorum) -> bool:
        """Whether we are one of the nodes that check that target now."""
        view = self._view()
        return view is not None and view.me in {peer.epoch for peer in chosen(name, view.peers, quorum)}

    def cast(self, name: str, found: CheckResult) -> None:
        """Vote with what the current run has found of that target."""
        self._vote_exchange.cast(name, _due_us(), found)

    def _epoch(self) -> int | None:
        view = self._view()
        return None if view is None else view.me

    async def results(self, name: str, quorum: Quorum, patience: float) -> Sequence[CheckResult]:
        """Wait for the findings of the chosen nodes at the instant of the current run; return them by rank.

        `patience`: seconds after that instant. A node that has not voted then counts as unknown.
        """
        view = self._view()
        asked = () if view is None else chosen(name, view.peers, quorum)
        left = max(current_run().due.timestamp() + patience - self._clock.wall(), 0.0)
        found = (
            await self._vote_exchange.collect(name, _due_us(), {peer.epoch for peer in asked}, left) if asked else {}
        )
        return [_named(found.get(peer.epoch), peer) for peer in asked]


def poll_of(store: Store | None, clock: Clock) -> Poll | None:
    """Make the polls of a node. None: its store is not shared."""
    can = capabilities(store)
    sharing = can.sharing
    return None if can.voting is None or sharing is None else Poll(can.voting, lambda: sharing.last, clock)


def _named(found: CheckResult | None, peer: Peer) -> CheckResult:
    if found is None:
        return CheckResult(status=Status.UNKNOWN, address=peer.name, error="it has not said anything in time")
    return CheckResult(status=found.status, address=peer.name, latency=found.latency, error=found.error)


def _due_us() -> int:
    return round(current_run().due.timestamp() * 1e6)
