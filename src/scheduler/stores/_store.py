"""The seam behind which a scheduler remembers. Write a store of your own against it; the suite in
`scheduler.testing.stores` says whether it is one, and `scheduler.stores.memory` is the meaning in its shortest form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from attrs import frozen

from .._values.errors import SchedulerError
from ._rows import Batch, Changes, Receipt, Retention, StoredJob, StoredPause, StoredState, StoredTick


class StoreError(SchedulerError):
    """A store could not do what it was asked for. The message says which store, what is wrong, and what to do."""


class StoreUnavailable(StoreError):
    """It may be over later: locked, full, gone, restarting. The same call is made again after a while."""


class StoreUnusable(StoreError):
    """It will not get better by waiting: another schema, another program's file, corrupt, replaced, in use by another
    agent.
    """


class StoreTakenOver(StoreUnusable):
    """Another agent has opened it since, and it is that agent's from then on."""


class Unstorable(StoreUnusable):
    """It was given what it cannot hold. Others are not to wait for that: the batch is taken apart, job by job."""


@frozen
class Opened:
    """`epoch`: how often this store has been opened, this time included. `instance`: which store it is; a copy that is
    put in its place has another, or an older epoch.
    """

    epoch: int
    instance: str


class Store(Protocol):
    """Where jobs, their states and the records of their ticks are kept. Every verb is synchronous.

    All verbs but `history` are called by one thread at a time, though not always the same one; `history` by any thread
    at any time. A verb raises StoreUnavailable or StoreUnusable (`commit` also Unstorable, which is one) and then has
    changed nothing, except that `commit` may
    have been carried out although its answer was lost: it can be repeated. After StoreUnavailable the next call
    connects anew where that is needed. No verb waits for longer than some seconds.
    """

    @property
    def is_immediate(self) -> bool:
        """It never waits for anything outside the process, so it may be called on the event loop."""

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:
        """Make it ready: connect, create or migrate the tables, take it for this agent alone.

        `hint` may be called from any thread when others have changed something: `changes` is asked soon after. It is
        only a hint: `changes` is also asked without it, every second or so.
        """

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """All jobs, in lists of a thousand or so, those that start soonest first, those without a state last.

        `changes` tells what is changed from here on.
        """

    def pauses(self) -> list[StoredPause]:
        """All pauses of scopes."""

    def running(self) -> list[StoredTick]:
        """Ticks that are RUNNING. Right after `open` these are crashes."""

    def owed(self) -> list[StoredTick]:
        """Ticks that are owed: they have ended and are to be tried again."""

    def commit(self, batch: Batch) -> Receipt:
        """Make all of it durable in one transaction, in this order.

        1. `jobs`: the row is put as a whole, or removed with its state; its ticks stay.
        2. `paused`: two columns of the rows that there are; what others have written into the rest stays, and a row
           that somebody has removed stays away.
        3. `finished`: the row is removed with its state, if its schedule still has that text.
        4. `states`: put as a whole, for jobs that there are; nothing is done for others.
        5. `pauses`: put or removed.
        6. `ended`: takes the place of the tick's record if that has the same fence; also if there is none, because
           it has been pruned. Otherwise it is stale: nothing is changed by it. (Not stale, because carried out before:
           if the record has the fence of a mark of the same tick in this very batch.)
        7. `missed`: a new record, unless the tick has one.
        8. `marks`: a new record, or one in place of a record with a smaller attempt that is neither RUNNING nor
           missed, or of one with the same fence. Otherwise it is refused: nothing is changed by it.

        The same batch again changes nothing and has the same answer.
        """

    def changes(self) -> Changes:
        """What others than this store object have changed in jobs and pauses since the last call, or since `load`."""

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """Records of ticks that were due before `before_us`, latest first, at most `limit`; of one job or of all.

        Paging by `before_us` is exact for one job; of all jobs, ticks of one due instant may stand on both sides of a
        page's end.
        """

    def prune(self, retention: Retention, now_us: int) -> int:
        """Forget history that is over the bounds, some of it at a time. How many records went; 0: all is within."""

    def close(self) -> None:
        """Let go of everything. Twice is harmless; does not raise."""
