"""The nodes that check a target."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.stores import Peer, chosen as chosen_of

from .rule import Quorum


def chosen(target: str, peers: Iterable[Peer], quorum: Quorum) -> tuple[Peer, ...]:
    """Choose the target's nodes. First: the node that drew the most."""
    fit = [peer for peer in peers if peer.left >= 0 and _is_fit(peer, quorum)]
    return chosen_of(target, fit, quorum.agents, quorum.apart)


def _is_fit(peer: Peer, quorum: Quorum) -> bool:
    return all(peer.labels.get(label) == value for label, value in quorum.where.items())
