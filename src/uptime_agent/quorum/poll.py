"""The owner of a target collects its nodes' findings.

No node calls a vote: all know when and where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler import current_run
from scheduler.stores import Peer, Store, View, Voting, capabilities
from timerqueue import Clock

from ..checks import CheckResult, Status
from ..instants import microseconds
from .choice import chosen
from .rule import Quorum
from .vote_exchange import VoteExchange


class Poll:
    """One node's polls. `view` None: unknown."""

    def __init__(self, voting: Voting, view: Callable[[], View | None], clock: Clock) -> None:
        self._vote_exchange = VoteExchange(voting, self._epoch, clock)
        self._view = view
        self._clock = clock

    async def run(self) -> None:
        """Exchange votes until cancelled."""
        await self._vote_exchange.run()

    def is_asked(self, name: str, quorum: Quorum) -> bool:
        """Whether we check the target now."""
        view = self._view()
        return view is not None and view.me in {peer.epoch for peer in chosen(name, view.peers, quorum)}

    def cast(self, name: str, found: CheckResult) -> None:
        """Vote with the current run's finding."""
        self._vote_exchange.cast(name, _due_us(), found)

    def _epoch(self) -> int | None:
        view = self._view()
        return None if view is None else view.me

    async def results(self, name: str, quorum: Quorum, patience: float) -> Sequence[CheckResult]:
        """Return findings on the current run's instant, by rank.

        `patience`: seconds after that instant; then a missing vote is unknown.
        """
        view = self._view()
        asked = () if view is None else chosen(name, view.peers, quorum)
        left = max(current_run().due.timestamp() + patience - self._clock.wall(), 0.0)
        found = (
            await self._vote_exchange.collect(name, _due_us(), {peer.epoch for peer in asked}, left) if asked else {}
        )
        return [_named(found.get(peer.epoch), peer) for peer in asked]


def poll_of(store: Store | None, clock: Clock) -> Poll | None:
    """Make a node's polls. None: its store is not shared."""
    can = capabilities(store)
    sharing = can.sharing
    return None if can.voting is None or sharing is None else Poll(can.voting, lambda: sharing.last, clock)


def _named(found: CheckResult | None, peer: Peer) -> CheckResult:
    if found is None:
        return CheckResult(status=Status.UNKNOWN, address=peer.name, error="it has not said anything in time")
    return CheckResult(status=found.status, address=peer.name, latency=found.latency, error=found.error)


def _due_us() -> int:
    return microseconds(current_run().due.timestamp())
