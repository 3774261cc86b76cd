"""The seam behind which several agents share one store: who is there, and which jobs are whose.

Jobs are not claimed tick by tick. Each belongs to a shard, and each shard to one agent at a time, which has its jobs in
its heap as if it were alone. An agent writes under the fence of its own row; whoever takes over removes that row first,
and so waits for a commit of it that is under way. From then on nothing of it can be written: what it had not marked may
be started elsewhere at once, and what it had marked is a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from attrs import evolve, field, frozen

from .._placement import fits, lacks
from ._rows import Answer, Changes, StoredJob, StoredState, StoredTick
from ._units import Loan

FORMAT: Final = 2
"""What this version knows of rows that others write. Agents that share a store write the lowest that is among them.

1: the first. 2: an agent may be unsettled, and has no right to shards then.
"""

UNSETTLED: Final = 2
"""The first format of which every agent knows that."""


LEASE: Final = 3.0
"""Seconds from one renewal for which the others leave an agent its shards."""

MAX_SKEW: Final = 1.0
"""Seconds by which an agent's wall clock may be off, where nobody says otherwise. One that follows NTP is off by some
thousandths, and is set right at once from about an eighth of a second on: more than this is looked after by nobody.
"""


@frozen(kw_only=True)
class Peer:
    """An agent that shares the store. `epoch`: of its incarnation, which no other has that is known to the store.

    `left`: seconds of its lease that are left, by the store's clock; less than 0: it has ended. `opened_us`: when it
    came, by its own clock. `is_heard`: it holds a lock that goes with its session, see `Sharing.hear`. `labels`: where
    it stands, as its operator says: `{"region": "eu"}`. `skew`: seconds by which its wall clock is ahead of the
    store's, as it has found at its last renewal; None: not yet. `is_off`: that is too much, and no shard is to be its.
    `is_unsettled`: it still reads the store, or is about to leave, and has no right to a shard that one of the others
    could have.
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
        """Whether it may have jobs for which a text of labels, or of a part, says where."""
        return fits(self, where)


@frozen
class LabelledShard:
    """A shard of jobs that are for agents with some labels, `where`, and who has it. 0: nobody."""

    where: str
    owner: int


@frozen(kw_only=True)
class View:
    """The agents that share a store, and the owner of each shard, at one moment. `me`: our epoch. 0: nobody has it.

    `owners`: of the shards that any agent may have. `labelled`: the others, by number; of those there are as many as
    jobs ask for.
    """

    me: int
    peers: tuple[Peer, ...]
    owners: tuple[int, ...]
    at_us: int
    """That moment by the store's clock."""

    asked: float = 0.0
    """When the store was asked, in seconds of a clock of ours that counts while the machine sleeps too."""

    answered: float = 0.0
    """When it answered, likewise."""

    since: float = 0.0
    """Since when the store has answered each look, likewise. A node that has not watched the others for a whole lease
    takes nobody for dead.
    """

    is_news: bool = False
    """Whether there is anything that `Store.changes` has not told yet."""
    labelled: Mapping[int, LabelledShard] = field(factory=dict, hash=False)

    def shards(self) -> Iterator[tuple[int, int]]:
        """All shards with their owners."""
        yield from enumerate(self.owners)
        for shard, found in self.labelled.items():
            yield shard, found.owner

    def owner_of(self, shard: int) -> int:
        """The owner of a shard, which may be one that is not known yet: nobody has that."""
        if shard < len(self.owners):
            return self.owners[shard]
        return self.labelled[shard].owner if shard in self.labelled else 0

    @property
    def heeds_unsettled(self) -> bool:
        """Whether all who are there give nothing to an agent that is unsettled."""
        return all(peer.format >= UNSETTLED for peer in self.peers if peer.left >= 0)

    def lacks(self, where: str) -> bool:
        """Whether the agents that are there are too few for a text of labels, or of a part."""
        return lacks(where, [peer for peer in self.peers if peer.left >= 0])

    @property
    def may_heed(self) -> bool:
        """Whether the end of a session is a sign of a death: the store has been in reach for a whole lease."""
        return self.answered - self.since >= LEASE

    def with_ours(self, shards: Iterable[int]) -> View:
        """A view like this, once these shards have become ours."""
        return self.after([], dict.fromkeys(shards, self.me))

    def after(self, gone: Collection[int], given: Mapping[int, int]) -> View:
        """A view like this, once these agents have gone, and these shards have these owners."""
        now = {n: given.get(n, 0 if owner in gone else owner) for n, owner in self.shards()}
        return evolve(
            self,
            peers=tuple(p for p in self.peers if p.epoch not in gone),
            owners=tuple(now[n] for n in range(len(self.owners))),
            labelled={n: LabelledShard(found.where, now[n]) for n, found in self.labelled.items()},
        )

    def ours(self) -> set[int]:
        """The shards that are ours."""
        return {shard for shard, owner in self.shards() if owner == self.me}


@frozen(kw_only=True)
class TakenShards:
    """Some jobs of shards that have become ours, and what was cut off of all of them. The jobs that owe a tick come
    first, then the soonest starts.
    """

    jobs: list[tuple[StoredJob, StoredState | None]]
    running: list[StoredTick]
    owed: list[StoredTick]


@frozen(kw_only=True)
class AgentRow:
    """One agent as the tables of a store have it. `left`: seconds of its lease; None: it has the store for itself.

    `jobs`: how many are in its `shards`. `lag`: by how many seconds the oldest of their next starts has passed. `skew`,
    `is_off`: see Peer. `version`: of its software; None: one that did not say. `connections`: how many it has to the
    server; None likewise, or it has the store for itself.
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
    """An agent has gone, and the others have claimed its shards. `ago`: seconds since it went.

    `is_dead`: it was buried; else it left in order. `claimed`: how many of its `shards` have been claimed. `seconds`:
    until the last of these was; from the last renewal of its lease if it died, and from its good-bye if it left. None:
    none has been claimed. Of two that go at the same moment it is not told apart whose shards are claimed first.
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
    """A server that follows the one of a store. `state`: "sync" or "quorum" if commits wait for it, "async" or
    "potential" if they do not; None: our role may not know.
    """

    name: str
    state: str | None

    @property
    def is_waited_for(self) -> bool | None:
        """Whether commits wait for it; None: that is not known."""
        return None if self.state is None else self.state in {"sync", "quorum"}


@frozen(kw_only=True)
class StoreServer:
    """The server of a store, and the standbys that may take its place. One that commits do not wait for loses some.

    `is_standby`: it follows another server itself, and takes no commits. `synchronous_commit`: what our commits wait
    for.
    """

    is_standby: bool
    synchronous_commit: str
    standbys: tuple[Standby, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether commits wait until standbys have them on their disks, if there are any to wait for."""
        return self.synchronous_commit in {"on", "remote_apply"}

    @property
    def is_safe(self) -> bool:
        """Whether it takes commits, and none that it has answered is lost if any of its standbys takes its place."""
        if self.is_standby:
            return False
        return not self.standbys or (self.waits and all(each.is_waited_for for each in self.standbys))


@frozen(kw_only=True)
class FleetView:
    """The agents that have a store. `free`: shards that nobody has. `requests`: those that are not done.

    `hand_overs`: the last ones, latest first. `loans`: units of the fleet's limits. `waiting`: how many jobs ask for
    labels that no agent has. `server`: of a store that has one.
    """

    agents: tuple[AgentRow, ...]
    free: int
    requests: int
    hand_overs: tuple[HandOver, ...] = ()
    loans: tuple[Loan, ...] = ()
    waiting: Mapping[str, int] = field(factory=dict, hash=False)
    server: StoreServer | None = None


def waiting_of(jobs: Iterable[tuple[str, int]], agents: Sequence[AgentRow]) -> dict[str, int]:
    """Of labels with the numbers of jobs that nobody has: those that no agent has, either."""
    return {where: count for where, count in jobs if lacks(where, agents)}


Rows = Iterator[list[tuple[StoredJob, StoredState | None]]]


class Sharing(Protocol):
    """The verbs by which agents share a store. All are synchronous, and raise what those of a Store raise.

    One thread calls `renew`, `bury` and `claim`. The others are for any thread, `close` for when all of these have
    ended. A shard is handed on when all that was to be written of its jobs is durable.
    """

    max_skew: float | None
    """Seconds by which our wall clock may be off; None: nobody cares."""

    begun: Collection[int]
    """Requests that are being carried out here: `Store.changes` leaves them out. Any thread."""

    last: View | None
    """What the last renewal has found, and what `bury` has changed since; None: there was none. May be read in any
    thread.
    """

    def renew(self, skew: float | None = None, *, is_off: bool = False, only_look: bool = False) -> View:
        """Hold our lease from now on, and look around. `skew`, `is_off`: see Peer. Raises StoreTakenOver if we have
        been buried.

        `only_look`: the lease stays as it is, which costs the store no write.
        """

    def settle(self, *, stays: bool) -> None:
        """Have a right to shards from now on, for all that the store holds has been read; or none any more, for we are
        about to leave. The others are told.
        """

    def bury(self, epochs: Sequence[int], heard: Collection[int] = ()) -> list[int]:
        """Remove agents whose leases have ended, or (`heard`) whose sessions have, once their last commits are over.
        Return those that are gone. Their shards have whom they belong to now, by what was seen last.
        """

    def hear(self, epoch: int, is_over: Callable[[], bool]) -> bool:
        """Wait until the session of an agent ends, for some seconds or until `is_over`. Whether it has ended.

        For a thread of its own. Raises StoreUnusable where sessions mean nothing, as behind a pooler.
        """

    def claim(self, shards: Sequence[int]) -> list[int]:
        """Take shards that nobody has. Return those that are ours now."""

    def leave(self) -> None:
        """Say good-bye: our shards belong to the others now, as far as we know of any, and these are told."""

    def close(self) -> None:
        """Let go of what was needed for all that."""

    def hand_on(self, shards: Sequence[int], to: int) -> None:
        """Give shards of ours to another agent. If that has gone, they are nobody's."""

    def forget_empty(self) -> list[int]:
        """Remove the shards of labels that no job asks for any more, of those that are ours or nobody's. Return them.

        One that is asked for again is made anew, and is nobody's then.
        """

    def take(self, shards: Sequence[int], most: int, until_us: int | None = None) -> TakenShards:
        """Read the first jobs of these shards, at most so many, and all of their ticks that are RUNNING, or owed.

        Jobs that owe a tick come before all others. `until_us`: of the others only jobs that start until then.
        """

    def load(self, shards: Sequence[int]) -> Rows:
        """Yield the jobs of these shards, in lists, the soonest starts first. Each list is as the rows are by then."""

    def load_others(self, shards: Sequence[int]) -> Rows:
        """Yield the jobs of all shards but these, in lists. Each list is as the rows are by then."""

    def running(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the ticks of these shards that are RUNNING. If their agent has gone, these are crashes."""

    def owed(self, shards: Sequence[int]) -> list[StoredTick]:
        """Return the ticks of these shards that are owed."""

    def reread(self, job_ids: Collection[str]) -> Changes:
        """Return the rows of these jobs as they are after all that was committed before: see `Polling`."""

    def answers(self, numbers: Sequence[int]) -> list[Answer]:
        """Return what is known of these requests of ours, which are durable."""
