"""The choice of the agents that check a target. All who know the same agents choose the same, without a word.

Each agent draws a number for each target, and the highest are chosen: so agents have like shares, and when one goes,
only what it had is chosen anew. The draw goes by the name of an agent, which a restart does not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from scheduler.stores import Peer

from .rule import Quorum


def chosen(target: str, peers: Iterable[Peer], quorum: Quorum) -> tuple[Peer, ...]:
    """Choose the agents that check the target of that name, out of those that are there. First: who drew the most."""
    fit = [peer for peer in peers if peer.left >= 0 and _is_fit(peer, quorum)]
    ranked = sorted(fit, key=lambda peer: (_draw(target, peer), peer.epoch), reverse=True)
    if quorum.agents is None:
        return tuple(ranked)
    return tuple(_apart(ranked, quorum.apart)[: quorum.agents])


def _is_fit(peer: Peer, quorum: Quorum) -> bool:
    return all(peer.labels.get(label) == value for label, value in quorum.where.items())


def _draw(target: str, peer: Peer) -> bytes:
    return blake2b(f"{peer.name}\0{target}".encode("utf-8", "replace"), digest_size=8).digest()


def _apart(ranked: list[Peer], label: str) -> list[Peer]:
    """Put the first of each value of the label before the second of any, and so on. Who has none is its own value."""
    rounds: dict[str, int] = {}
    keyed = []
    for place, peer in enumerate(ranked):
        value = peer.labels.get(label, f"\0{peer.epoch}")
        rounds[value] = rounds.get(value, 0) + 1
        keyed.append((rounds[value], place, peer))
    return [peer for _, _, peer in sorted(keyed, key=lambda each: each[:2])]
