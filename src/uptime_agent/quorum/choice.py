"""The choice of the agents that check a target: of those that are there and fit, as the rule of its quorum says."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.stores import Peer, chosen as chosen_of

from .rule import Quorum


def chosen(target: str, peers: Iterable[Peer], quorum: Quorum) -> tuple[Peer, ...]:
    """Choose the agents that check the target of that name, out of those that are there. First: who drew the most."""
    fit = [peer for peer in peers if peer.left >= 0 and _is_fit(peer, quorum)]
    return chosen_of(target, fit, quorum.agents, quorum.apart)


def _is_fit(peer: Peer, quorum: Quorum) -> bool:
    return all(peer.labels.get(label) == value for label, value in quorum.where.items())
