"""The protocol of stores. Write a store of your own against it.

The suite in `scheduler.testing.stores` checks it, and `scheduler.stores.memory` is the shortest example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol
from uuid import UUID

from attrs import frozen

from timerqueue import LifecycleError

from .._values import SchedulerError
from ._executions import Executions
from ._rows import Batch, Changes, Receipt, Retention, StoredJob, StoredPause, StoredState, StoredTick
from ._sharing import Sharing
from ._units import Lending
from ._voting import Voting


class StoreError(SchedulerError):
    """A store could not do what it was asked for. The message says which store, what is wrong, and what to do."""


class StoreUnavailable(StoreError):
    """The store does not work now, but may work later: locked, full, gone, restarting. The call is made again."""


class StoreLocked(StoreUnavailable):
    """Another session has locked a row or a table that must be written."""


class StoreUnreachable(StoreUnavailable):
    """There is no connection to the store, or it broke. Another node of the fleet may have one."""


class StoreBusy(StoreUnavailable):
    """Other callers in this process have the needed connection. It says nothing of the store."""


class StoreUnusable(StoreError):
    """The store cannot be used, and waiting does not help.

    It has another schema, is another program's file, corrupt, replaced, or in use by another node.
    """


class StoreTakenOver(StoreUnusable):
    """Another node has opened the store since, and has it now."""


class StoreForked(StoreUnusable, LifecycleError):
    """The store was opened by another process, of which this one is a fork."""


class Unstorable(StoreUnusable):
    """The store cannot hold something in the batch. The batch is sent again, job by job."""


@frozen
class Opened:
    """The answer of `open`. `epoch`: how often this store has been opened, this time included.

    `instance`: which store it is; a copy in its place has another instance or an older epoch. `incarnation`: tells two
    openings of one epoch apart. For a store whose server may lose the last opening and give its epoch again; else None.
    """

    epoch: int
    instance: str
    incarnation: UUID | None = None


class Store(Protocol):
    """A store keeps jobs, their states and the records of their ticks. All its methods are synchronous.

    One thread at a time calls them, though not always the same thread. Only `history` may be called by any thread at
    any time. A method that fails raises StoreUnavailable or StoreUnusable (`commit` also Unstorable), and has then
    changed nothing. The exception is `commit`: it may have been carried out although its answer was lost, and it can be
    repeated. After StoreUnavailable the next call connects again if needed. No method waits longer than some seconds.
    """

    @property
    def is_immediate(self) -> bool:
        """Whether the store never waits for anything outside the process. Then it is called on the event loop."""

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:
        """Make the store ready: connect, create or migrate the tables, and take it for this node alone.

        Call `hint` when others have changed something, from any thread: `changes` is called soon after. It is only a
        hint, because `changes` is also called without it, about every second.
        """

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """Yield all jobs, in lists of about a thousand. The soonest starts come first, jobs without a state last.

        From here on, `changes` returns what others change.
        """

    def pauses(self) -> list[StoredPause]:
        """Return all pauses of scopes."""

    def running(self) -> list[StoredTick]:
        """Return the ticks that are RUNNING. Right after `open` these are crashes."""

    def owed(self) -> list[StoredTick]:
        """Return the ticks that are owed: they have ended, and will be tried again."""

    def commit(self, batch: Batch) -> Receipt:
        """Make the whole batch durable in one transaction, in this order.

        1. `jobs`: put the whole row, or remove it with its state. Its ticks stay.
        2. `paused`: write two columns of the rows that exist. The other columns stay as they are. A removed row does
           not come back.
        3. `finished`: remove the row with its state, if its schedule still has that text.
        4. `states`: put the whole state, for jobs that exist. Do nothing for others.
        5. `pauses`: put or remove them.
        6. `ended`: replace the tick's record if it has the same fence, or if there is none because it was pruned.
           Otherwise the end is stale, and changes nothing. One exception: the record has the fence of a mark of the
           same tick in this batch. Then the end is not stale, because the batch was carried out before.
        7. `missed`: make a new record, unless the tick has one.
        8. `marks`: make a new record. Replace a record that has the same fence, or that has a smaller attempt and is
           neither RUNNING nor missed. Otherwise the mark is refused, and changes nothing.
        9. For executions: `placed` (executions neither live nor taken stay as they are) and `lost` (if they are still
           where the batch says). Then `released` (what this node has taken is done) and `planned` (for jobs that
           exist). A store without executions never gets any of these.

        Committing the same batch again changes nothing, and has the same answer.
        """

    def changes(self) -> Changes:
        """Return what others than this store object have changed in jobs and pauses since the last call or `load`.

        A store whose server may forget changes that it told of says so, until `load` is called. A store that nodes
        share is asked by another thread than that of the commits, while these go on.
        """

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """Return records of ticks due before `before_us`, latest first, at most `limit`; of one job or of all.

        For one job, paging by `before_us` is exact. For all jobs, ticks that were due at the same instant may be on
        both sides of a page's end.
        """

    def prune(self, retention: Retention, now_us: int) -> int:
        """Delete some of the history that is over the bounds. Return how many records; 0: nothing is over them."""

    def close(self) -> None:
        """Release everything. Does not raise. Closing again changes nothing."""


Locked = Callable[[Sequence[Batch]], set[str]]
"""Return the ids of the jobs that these batches write and of which another session has locked a row. The thread that
commits calls it. Raises what a Store raises."""


@frozen(kw_only=True)
class Capabilities:
    """The abilities of one store beyond the ten verbs of `Store`. None: it lacks that one.

    Each is an attribute of the store, or a method, of the same name. Only `capabilities` looks for it.
    """

    sharing: Sharing | None = None
    """The verbs by which nodes share the store: of `PostgresStore(dsn, shared=True)`."""
    lending: Lending | None = None
    """The verbs by which units of limits are lent to these nodes: of the same."""
    voting: Voting | None = None
    """The verbs by which these nodes vote: of the same."""
    executions: Executions | None = None
    """The verbs of next starts that stand in a queue: of PostgresStore and MemoryStore."""
    locked: Locked | None = None
    """Which jobs wait for another session's lock: of PostgresStore."""


def capabilities(store: object) -> Capabilities:
    """Find what a store can do beyond the ten verbs. No store, None, can do nothing."""
    sharing: Sharing | None = getattr(store, "sharing", None)
    lending: Lending | None = getattr(store, "lending", None)
    voting: Voting | None = getattr(store, "voting", None)
    executions: Executions | None = getattr(store, "executions", None)
    locked: Locked | None = getattr(store, "locked", None)
    return Capabilities(sharing=sharing, lending=lending, voting=voting, executions=executions, locked=locked)
