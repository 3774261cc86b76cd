"""The protocol by which nodes share one store.

Each job belongs to a shard, and each shard to one node at a time. A node writes under the fence of its own row. A
takeover first removes that row: it waits for a commit in flight, and later writes of the old node fail. Unmarked ticks
may start elsewhere at once; marked ticks are crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from attrs import evolve, field, frozen

from .._placement import fits, lacks
from ._rows import Answer, Changes, StoredJob, StoredState, StoredTick
from ._units import Loan

FORMAT: Final = 2
"""The row format. A fleet writes the lowest format of its nodes. 2 adds unsettled nodes."""

UNSETTLED: Final = 2


LEASE: Final = 3.0
"""Seconds for which a renewal protects a node's shards."""

MAX_SKEW: Final = 1.0
"""Seconds by which a node's wall clock may be off. NTP steps a clock from about 0.125 s on."""


@frozen(kw_only=True)
class Peer:
    """A node that shares the store. `epoch`: unique in the store.

    `left`: seconds of its lease by the store's clock; negative: ended. `opened_us`: by its own clock. `is_heard`: holds
    a lock that ends with its session. `labels`: from its operator. `skew`: seconds its wall clock was ahead of the
    store's at the last renewal; None: unknown. `is_off`: too much skew to have a shard. `is_unsettled`: still reading
    the store, or leaving; others come first for shards.
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
        """Whether it has these labels, perhaps of a part."""
        return fits(self, where)


@frozen
class LabelledShard:
    """`owner` 0: none."""

    where: str
    owner: int


@frozen(kw_only=True)
class View:
    """The nodes and shard owners of a store at one moment. `me`: our epoch.

    `owners`: of the shards without labels; 0: none. `labelled`: the shards of labels, by number.
    """

    me: int
    peers: tuple[Peer, ...]
    owners: tuple[int, ...]
    at_us: int
    """By the store's clock."""

    asked: float = 0.0
    """Seconds of our clock, which counts while the machine sleeps."""

    answered: float = 0.0

    since: float = 0.0
    """The start of unbroken answers. Before a whole lease no other node counts as dead."""

    is_news: bool = False
    """Whether `Store.changes` has more."""
    labelled: Mapping[int, LabelledShard] = field(factory=dict, hash=False)

    def shards(self) -> Iterator[tuple[int, int]]:
        yield from enumerate(self.owners)
        for shard, found in self.labelled.items():
            yield shard, found.owner

    def owner_of(self, shard: int) -> int:
        """Return the owner; 0: none or unknown."""
        if shard < len(self.owners):
            return self.owners[shard]
        return self.labelled[shard].owner if shard in self.labelled else 0

    @property
    def heeds_unsettled(self) -> bool:
        """Whether all living nodes know unsettled nodes."""
        return all(peer.format >= UNSETTLED for peer in self.peers if peer.left >= 0)

    def lacks(self, where: str) -> bool:
        return lacks(where, [peer for peer in self.peers if peer.left >= 0])

    @property
    def may_heed(self) -> bool:
        """Whether a session's end may mean a death: the store answered for a whole lease."""
        return self.answered - self.since >= LEASE

    def with_ours(self, shards: Iterable[int]) -> View:
        return self.after([], dict.fromkeys(shards, self.me))

    def after(self, gone: Collection[int], given: Mapping[int, int]) -> View:
        now = {n: given.get(n, 0 if owner in gone else owner) for n, owner in self.shards()}
        return evolve(
            self,
            peers=tuple(p for p in self.peers if p.epoch not in gone),
            owners=tuple(now[n] for n in range(len(self.owners))),
            labelled={n: LabelledShard(found.where, now[n]) for n, found in self.labelled.items()},
        )

    def ours(self) -> set[int]:
        return {shard for shard, owner in self.shards() if owner == self.me}


@frozen(kw_only=True)
class TakenShards:
    """Some jobs of our new shards, owing ones first, and all cut-off ticks."""

    jobs: list[tuple[StoredJob, StoredState | None]]
    running: list[StoredTick]
    owed: list[StoredTick]


@frozen(kw_only=True)
class AgentRow:
    """A node as stored. `left`: seconds of its lease; None: exclusive.

    `lag`: seconds since its oldest next start. `skew`, `is_off`: see Peer. `version`, `connections`: None if not
    reported.
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
    """A node went `ago` seconds ago, and others claimed its shards.

    `is_dead`: it was buried; else it left. `claimed`: of its `shards`. `seconds`: from its last renewal or good-bye to
    the last claim. Simultaneous exits share their claims.
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
    """A standby server. `state`: "sync" or "quorum" (commits wait for it), "async" or "potential".

    None: our role may not see it.
    """

    name: str
    state: str | None

    @property
    def is_waited_for(self) -> bool | None:
        """Whether commits wait; None: unknown."""
        return None if self.state is None else self.state in {"sync", "quorum"}


@frozen(kw_only=True)
class StoreServer:
    """A store's server. A failover to a standby loses commits that do not wait for it.

    `is_standby`: it takes no commits. `synchronous_commit`: of our commits.
    """

    is_standby: bool
    synchronous_commit: str
    standbys: tuple[Standby, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether commits wait for standbys' disks, if any."""
        return self.synchronous_commit in {"on", "remote_apply"}

    @property
    def is_safe(self) -> bool:
        """Whether it takes commits, and a failover loses no answered commit."""
        if self.is_standby:
            return False
        return not self.standbys or (self.waits and all(each.is_waited_for for each in self.standbys))


@frozen(kw_only=True)
class FleetView:
    """The nodes of a store. `free`: shards without an owner. `requests`: not done.

    `hand_overs`: latest first. `waiting`: jobs whose labels no node has.
    """

    agents: tuple[AgentRow, ...]
    free: int
    requests: int
    hand_overs: tuple[HandOver, ...] = ()
    loans: tuple[Loan, ...] = ()
    waiting: Mapping[str, int] = field(factory=dict, hash=False)
    server: StoreServer | None = None


def waiting_of(jobs: Iterable[tuple[str, int]], agents: Sequence[AgentRow]) -> dict[str, int]:
    return {where: count for where, count in jobs if lacks(where, agents)}


Rows = Iterator[list[tuple[StoredJob, StoredState | None]]]


class Sharing(Protocol):
    """The methods by which nodes share a store. Synchronous; they raise like Store.

    One thread calls `renew`, `bury` and `claim`. Any thread calls the others, and `close` after all of them. Hand a
    shard over only once all writes for its jobs are durable.
    """

    max_skew: float | None
    """Seconds by which our wall clock may be off; None: no bound."""

    begun: Collection[int]
    """Requests in progress here, which `Store.changes` omits. Any thread."""

    last: View | None
    """The last renewal's view, updated by `bury`. Any thread."""

    def renew(self, skew: float | None = None, *, is_off: bool = False, only_look: bool = False) -> View:
        """Renew our lease, unless `only_look`; return the view. Raises StoreTakenOver if we were buried."""

    def settle(self, *, stays: bool) -> None:
        """Claim a right to shards after reading the store; `stays` False: give it up. Notify other nodes."""

    def bury(self, epochs: Sequence[int], heard: Collection[int] = ()) -> list[int]:
        """Remove nodes whose leases, or (`heard`) sessions, have ended. Return them.

        Waits for their last commits. Their shards get new owners from the last view.
        """

    def hear(self, epoch: int, is_over: Callable[[], bool]) -> bool:
        """Wait, some seconds or until `is_over`, for the end of a node's session. True: it ended.

        For its own thread. Raises StoreUnusable where sessions mean nothing, as behind a pooler.
        """

    def claim(self, shards: Sequence[int]) -> list[int]:
        """Take ownerless shards. Return the shards that became ours."""

    def leave(self) -> None:
        """Give our shards to the other known nodes, and notify them."""

    def close(self) -> None:
        """Release the resources."""

    def hand_on(self, shards: Sequence[int], to: int) -> None:
        """Give shards to another node; if it has gone, they have no owner."""

    def forget_empty(self) -> list[int]:
        """Remove our and ownerless shards of labels without jobs. Return them. They come back when needed."""

    def take(self, shards: Sequence[int], most: int, until_us: int | None = None) -> TakenShards:
        """Read at most `most` jobs of these shards, and all their RUNNING or owed ticks.

        Jobs that owe a tick come first; of others only starts until `until_us`.
        """

    def load(self, shards: Sequence[int]) -> Rows:
        """Yield these shards' jobs, soonest starts first. Each list has its own moment."""

    def load_others(self, shards: Sequence[int]) -> Rows:
        """Yield the other shards' jobs. Each list has its own moment."""

    def running(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the RUNNING ticks. If their node has gone, they are crashes."""

    def owed(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the owed ticks."""

    def reread(self, job_ids: Collection[str]) -> Changes:
        """Return these jobs' rows after all earlier commits."""

    def answers(self, numbers: Sequence[int]) -> list[Answer]:
        """Return what is known of these durable requests."""
