"""The protocol of stores, for writing your own.

`scheduler.testing.stores` tests it; `scheduler.stores.memory` is the shortest example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol
from uuid import UUID

from attrs import frozen

from timerqueue import LifecycleError

from .._values import SchedulerError
from ._executions import Executions
from ._rows import Batch, Changes, Receipt, Retention, StoredChange, StoredJob, StoredPause, StoredState, StoredTick
from ._sharing import FleetView, Sharing
from ._units import Lending
from ._voting import Voting


class StoreError(SchedulerError):
    """A store's operation failed. The message names the store, the reason and the remedy."""


class StoreUnavailable(StoreError):
    """The store may work again later: locked, full, gone, restarting. The call is repeated."""


class StoreLocked(StoreUnavailable):
    """Another session has locked a needed row or table."""


class StoreUnreachable(StoreUnavailable):
    """There is no connection to the store, or it broke. Another node may have one."""


class StoreBusy(StoreUnavailable):
    """Other callers in this process use the connection; the store may be well."""


class StoreUnusable(StoreError):
    """The store cannot be used, and waiting does not help.

    It has another schema, is another program's, corrupt, replaced, or in use by another node.
    """


class StoreTakenOver(StoreUnusable):
    """Another node has opened the store and has it now."""


class StoreForked(StoreUnusable, LifecycleError):
    """This process is a fork of the process that opened the store."""


class Unstorable(StoreUnusable):
    """The store cannot hold something in the batch, which is sent again job by job."""


@frozen
class Opened:
    """The answer of `open`. `epoch`: how often this store has been opened.

    `instance`: identifies the store; a copy in its place has another instance or an older epoch. `incarnation`: tells
    apart openings with one epoch, if a server may lose the last opening.
    """

    epoch: int
    instance: str
    incarnation: UUID | None = None


class Store(Protocol):
    """Keeps jobs, their states and the records of their ticks. All methods are synchronous.

    One thread at a time calls them; any thread may call `history` at any time. A method that fails raises
    StoreUnavailable or StoreUnusable (`commit` also Unstorable), and has changed nothing. Only a `commit` may have
    succeeded without an answer; repeat it. The call after StoreUnavailable reconnects. No method waits longer than some
    seconds.
    """

    @property
    def is_immediate(self) -> bool:
        """Whether the store never waits outside the process. Then the event loop calls it."""

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:
        """Connect, create or migrate the tables, and take the store for this node alone.

        Call `hint`, from any thread, when others change something: `changes` is called soon. Else it is called about
        every second.
        """

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """Yield all jobs in lists of about a thousand, soonest starts first, jobs without a state last.

        From here on, `changes` returns what others change.
        """

    def pauses(self) -> list[StoredPause]:
        """Return all pauses of scopes."""

    def running(self) -> list[StoredTick]:
        """Return the RUNNING ticks; right after `open`, these are crashes."""

    def owed(self) -> list[StoredTick]:
        """Return the owed ticks: ended, to be tried again."""

    def commit(self, batch: Batch) -> Receipt:
        """Make the whole batch durable in one transaction, in this order.

        1. `jobs`: put the whole row, or remove it with its state. Its ticks stay. A row in `changed` is put only in the
           place of another.
        2. `paused`: write these two columns of existing rows only.
        3. `finished`: remove the row with its state, if its schedule still has that text.
        4. `states`: put the whole state of existing jobs.
        5. `pauses`: put or remove them.
        6. `ended`: replace the tick's record if it has the same fence or was pruned. Otherwise the end is stale and
           changes nothing. If this batch's mark of the tick is recorded, the batch is repeated and the end not stale.
        7. `missed`: make a record, unless the tick has one.
        8. `marks`: make a record, or replace one with the same fence, or with a smaller attempt and neither RUNNING nor
           missed. Otherwise the mark is refused and changes nothing.
        9. In stores with executions: `placed` (if live or taken), then `lost` (if still at that position). Then
           `released` (what this node took is done) and `planned` (for existing jobs).

        10. In stores with made changes: `made`.

        Committing the same batch again changes nothing and has the same answer.
        """

    def changes(self) -> Changes:
        """Return others' changes in jobs and pauses since the last call or `load`.

        If the server may have forgotten changes, the answer says so until `load`. In a shared store, another thread
        calls it during commits.
        """

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """Return records of ticks due before `before_us`, latest first, of one job or of all.

        Paging is exact for one job; a page of all jobs may split ticks due at one instant.
        """

    def prune(self, retention: Retention, now_us: int) -> int:
        """Delete some history over the bounds. Return the number of records; 0: nothing is over them."""

    def close(self) -> None:
        """Release everything. Does not raise; may be repeated."""


class MadeChanges(Protocol):
    """Who changed what, as batches have told in `made`. Synchronous; raises like Store. Any thread."""

    def read(
        self, *, scope: str | None = None, actor: str | None = None, limit: int = 100, before_us: int | None = None
    ) -> list[StoredChange]:
        """Return changes before `before_us`, latest first, of one scope or of all, by one actor or by all."""


Locked = Callable[[Sequence[Batch]], set[str]]
"""Return which jobs of these batches another session has locked. Raises like Store. For the committing thread."""


@frozen(kw_only=True)
class Capabilities:
    """The abilities of a store beyond `Store`; None: it lacks one. Each is its attribute or method of that name."""

    sharing: Sharing | None = None
    """`PostgresStore(dsn, shared=True)`."""
    lending: Lending | None = None
    """Shared PostgresStore."""
    voting: Voting | None = None
    """Shared PostgresStore."""
    executions: Executions | None = None
    """PostgresStore and MemoryStore."""
    locked: Locked | None = None
    """PostgresStore."""
    fleet: Callable[[], FleetView] | None = None
    """PostgresStore."""
    made_changes: MadeChanges | None = None
    """All stores of this package."""


def capabilities(store: object) -> Capabilities:
    """Find what a store can do beyond `Store`."""
    sharing: Sharing | None = getattr(store, "sharing", None)
    lending: Lending | None = getattr(store, "lending", None)
    voting: Voting | None = getattr(store, "voting", None)
    executions: Executions | None = getattr(store, "executions", None)
    locked: Locked | None = getattr(store, "locked", None)
    fleet: Callable[[], FleetView] | None = getattr(store, "fleet", None)
    made_changes: MadeChanges | None = getattr(store, "made_changes", None)
    return Capabilities(
        sharing=sharing,
        lending=lending,
        voting=voting,
        executions=executions,
        locked=locked,
        fleet=fleet,
        made_changes=made_changes,
    )
