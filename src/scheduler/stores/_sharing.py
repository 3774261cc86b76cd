"""The protocol by which several nodes share one store: which nodes are there, and which jobs each has.

Jobs are not claimed tick by tick. Each belongs to a shard, and each shard to one node at a time. A node has its jobs in
its heap as if it were alone. A node writes under the fence of its own row. A node that takes over removes that row
first, and so waits for a commit in flight. From then on no write of the old node succeeds. Its unmarked ticks may be
started elsewhere at once; its marked ticks are crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from attrs import evolve, field, frozen

from .._placement import fits, lacks
from ._rows import Answer, Changes, StoredJob, StoredState, StoredTick
from ._units import Loan

FORMAT: Final = 2
"""The format of rows that this version knows. Nodes that share a store write the lowest format among them.

1: the first. 2: a node may be unsettled, and then has no right to shards.
"""

UNSETTLED: Final = 2
"""The first format in which every node knows unsettled nodes."""


LEASE: Final = 3.0
"""Seconds from a renewal during which other nodes leave a node its shards."""

MAX_SKEW: Final = 1.0
"""Seconds by which a node's wall clock may be off, by default.

A clock that follows NTP is off by some milliseconds, and is set from about an eighth of a second on. A clock that is
further off than this is not being corrected.
"""


@frozen(kw_only=True)
class Peer:
    """A node that shares the store. `epoch`: of its incarnation, unique in the store.

    `left`: seconds left of its lease, by the store's clock; less than 0: it has ended. `opened_us`: when it came, by
    its own clock. `is_heard`: it holds a lock that ends with its session, see `Sharing.hear`. `labels`: set by its
    operator, such as `{"region": "eu"}`. `skew`: seconds by which its wall clock was ahead of the store's at its last
    renewal; None: not known yet. `is_off`: that is too much, and it must have no shard. `is_unsettled`: it still reads
    the store, or is about to leave, and has no right to a shard that another node could have.
    """

    epoch: int
    name: str
    left: float
    format: int
    opened_us: int
    is_heard: bool = False
    labels: Mapping[str, str] = field(factory=dict, hash=False)
    skew: float | None = None
    is_off: bool = False
    is_unsettled: bool = False

    def fits(self, where: str) -> bool:
        """Whether its labels fit a text of labels, or of a part."""
        return fits(self, where)


@frozen
class LabelledShard:
    """A shard of jobs for nodes with the labels `where`, and its owner. 0: none."""

    where: str
    owner: int


@frozen(kw_only=True)
class View:
    """The nodes that share a store, and the owner of each shard, at one moment. `me`: our epoch. 0: no owner.

    `owners`: of the shards without labels. `labelled`: the shards with labels that jobs ask for, by number.
    """

    me: int
    peers: tuple[Peer, ...]
    owners: tuple[int, ...]
    at_us: int
    """That moment by the store's clock."""

    asked: float = 0.0
    """When the store was asked, in seconds of a clock of ours that counts while the machine sleeps too."""

    answered: float = 0.0
    """When it answered, on the same clock."""

    since: float = 0.0
    """Since when the store has answered each look, on the same clock.

    A node that has not watched the others for a whole lease takes none for dead.
    """

    is_news: bool = False
    """Whether there is anything that `Store.changes` has not told yet."""
    labelled: Mapping[int, LabelledShard] = field(factory=dict, hash=False)

    def shards(self) -> Iterator[tuple[int, int]]:
        """Yield all shards with their owners."""
        yield from enumerate(self.owners)
        for shard, found in self.labelled.items():
            yield shard, found.owner

    def owner_of(self, shard: int) -> int:
        """Return the owner of a shard; 0 for a shard that is not known yet."""
        if shard < len(self.owners):
            return self.owners[shard]
        return self.labelled[shard].owner if shard in self.labelled else 0

    @property
    def heeds_unsettled(self) -> bool:
        """Whether all living nodes give nothing to a node that is unsettled."""
        return all(peer.format >= UNSETTLED for peer in self.peers if peer.left >= 0)

    def lacks(self, where: str) -> bool:
        """Whether the living nodes are too few for a text of labels, or of a part."""
        return lacks(where, [peer for peer in self.peers if peer.left >= 0])

    @property
    def may_heed(self) -> bool:
        """Whether the end of a session may mean a death: the store was in reach for a whole lease."""
        return self.answered - self.since >= LEASE

    def with_ours(self, shards: Iterable[int]) -> View:
        """Return the view after these shards have become ours."""
        return self.after([], dict.fromkeys(shards, self.me))

    def after(self, gone: Collection[int], given: Mapping[int, int]) -> View:
        """Return the view after these nodes have gone, and these shards have got these owners."""
        now = {n: given.get(n, 0 if owner in gone else owner) for n, owner in self.shards()}
        return evolve(
            self,
            peers=tuple(p for p in self.peers if p.epoch not in gone),
            owners=tuple(now[n] for n in range(len(self.owners))),
            labelled={n: LabelledShard(found.where, now[n]) for n, found in self.labelled.items()},
        )

    def ours(self) -> set[int]:
        """Return our shards."""
        return {shard for shard, owner in self.shards() if owner == self.me}


@frozen(kw_only=True)
class TakenShards:
    """Some jobs of shards that have become ours, and the ticks that were cut off in all of them.

    Jobs that owe a tick come first, then the soonest starts.
    """

    jobs: list[tuple[StoredJob, StoredState | None]]
    running: list[StoredTick]
    owed: list[StoredTick]


@frozen(kw_only=True)
class AgentRow:
    """One node as the tables of a store have it. `left`: seconds of its lease; None: it has the store for itself.

    `jobs`: how many are in its `shards`. `lag`: by how many seconds the oldest of their next starts has passed. `skew`,
    `is_off`: see Peer. `version`: of its software; None: not told. `connections`: how many it has to the server; None:
    not told, or it has the store for itself.
    """

    name: str
    epoch: int
    labels: Mapping[str, str]
    opened_us: int
    format: int | None
    left: float | None
    shards: int
    jobs: int
    lag: float
    skew: float | None = None
    is_off: bool = False
    version: str | None = None
    connections: int | None = None


@frozen(kw_only=True)
class HandOver:
    """A node has gone, and other nodes have claimed its shards. `ago`: seconds since it went.

    `is_dead`: it was buried; else it left in order. `claimed`: how many of its `shards` have been claimed. `seconds`:
    until the last claim, from the last renewal of a dead node's lease or from the good-bye of a leaving one. None: none
    has been claimed. If two nodes go at the same moment, claims are not told apart.
    """

    name: str
    epoch: int
    is_dead: bool
    ago: float
    shards: int
    claimed: int
    seconds: float | None


@frozen
class Standby:
    """A server that follows a store's server. `state`: "sync" or "quorum" if commits wait for it.

    "async" or "potential" if they do not; None: our role may not see it.
    """

    name: str
    state: str | None

    @property
    def is_waited_for(self) -> bool | None:
        """Whether commits wait for it; None: unknown."""
        return None if self.state is None else self.state in {"sync", "quorum"}


@frozen(kw_only=True)
class StoreServer:
    """The server of a store, and the standbys that may replace it. A standby that commits do not wait for loses some.

    `is_standby`: the server itself follows another, and takes no commits. `synchronous_commit`: what our commits wait
    for.
    """

    is_standby: bool
    synchronous_commit: str
    standbys: tuple[Standby, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether commits wait until standbys, if any, have them on their disks."""
        return self.synchronous_commit in {"on", "remote_apply"}

    @property
    def is_safe(self) -> bool:
        """Whether it takes commits, and no answered commit is lost if a standby replaces it."""
        if self.is_standby:
            return False
        return not self.standbys or (self.waits and all(each.is_waited_for for each in self.standbys))


@frozen(kw_only=True)
class FleetView:
    """The nodes of a store. `free`: shards without an owner. `requests`: requests that are not done.

    `hand_overs`: the last takeovers and handoffs, latest first. `loans`: units of the fleet's limits. `waiting`: how
    many jobs ask for labels that no node has. `server`: of a store that has one.
    """

    agents: tuple[AgentRow, ...]
    free: int
    requests: int
    hand_overs: tuple[HandOver, ...] = ()
    loans: tuple[Loan, ...] = ()
    waiting: Mapping[str, int] = field(factory=dict, hash=False)
    server: StoreServer | None = None


def waiting_of(jobs: Iterable[tuple[str, int]], agents: Sequence[AgentRow]) -> dict[str, int]:
    """Return the labels that no node has, with the numbers of their jobs."""
    return {where: count for where, count in jobs if lacks(where, agents)}


Rows = Iterator[list[tuple[StoredJob, StoredState | None]]]


class Sharing(Protocol):
    """The verbs by which nodes share a store. Synchronous. Each raises what Store's verbs raise.

    One thread calls `renew`, `bury` and `claim`. Any thread calls the others, and `close` after all of them. A shard
    may be handed over once all writes for its jobs are durable.
    """

    max_skew: float | None
    """Seconds by which our wall clock may be off; None: without a bound."""

    begun: Collection[int]
    """Requests that are being carried out here: `Store.changes` leaves them out. Any thread."""

    last: View | None
    """The result of the last renewal, with what `bury` has changed since; None: not renewed yet. Any thread."""

    def renew(self, skew: float | None = None, *, is_off: bool = False, only_look: bool = False) -> View:
        """Renew our lease, and return what is there. `skew`, `is_off`: see Peer. Raises StoreTakenOver if we were
        buried.

        `only_look`: leave the lease as it is, which costs the store no write.
        """

    def settle(self, *, stays: bool) -> None:
        """Claim a right to shards, after reading the whole store. With `stays` False give it up: we are about to leave.

        The other nodes are told.
        """

    def bury(self, epochs: Sequence[int], heard: Collection[int] = ()) -> list[int]:
        """Remove nodes whose leases, or (`heard`) whose sessions, have ended, once their last commits are over.

        Return the removed nodes. Their shards have new owners now, by what was last seen.
        """

    def hear(self, epoch: int, is_over: Callable[[], bool]) -> bool:
        """Wait until the session of a node ends, for some seconds or until `is_over`. True: it has ended.

        For a thread of its own. Raises StoreUnusable where sessions mean nothing, as behind a pooler.
        """

    def claim(self, shards: Sequence[int]) -> list[int]:
        """Take shards without an owner. Return the shards that became ours."""

    def leave(self) -> None:
        """Say good-bye: give our shards to the other nodes that we know, and tell them."""

    def close(self) -> None:
        """Release the resources."""

    def hand_on(self, shards: Sequence[int], to: int) -> None:
        """Give shards of ours to another node. If it has gone, they have no owner."""

    def forget_empty(self) -> list[int]:
        """Remove our shards of labels, and those without an owner, that no job asks for any more. Return them.

        A removed shard that is asked for again is made again, without an owner.
        """

    def take(self, shards: Sequence[int], most: int, until_us: int | None = None) -> TakenShards:
        """Read at most `most` jobs of these shards, and all of their ticks that are RUNNING or owed.

        Jobs that owe a tick come first. `until_us`: of the others only jobs that start until then.
        """

    def load(self, shards: Sequence[int]) -> Rows:
        """Yield the jobs of these shards, in lists, the soonest starts first. Each list is as its rows are then."""

    def load_others(self, shards: Sequence[int]) -> Rows:
        """Yield the jobs of all other shards, in lists. Each list is as its rows are when read."""

    def running(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the ticks of these shards that are RUNNING. If their node has gone, these are crashes."""

    def owed(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the ticks of these shards that are owed."""

    def reread(self, job_ids: Collection[str]) -> Changes:
        """Return the rows of these jobs as they are after all earlier commits: see `Polling`."""

    def answers(self, numbers: Sequence[int]) -> list[Answer]:
        """Return what is known of these requests of ours, which are durable."""
