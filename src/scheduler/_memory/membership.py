"""Membership: whether others have the store too, and what this means for its beginning, its end and its polls.

    NoFleet             the store is not shared
    _fleet.Sharded      several nodes share it: each has the jobs of its shards
    _fleet.Queued       jobs come out of a queue

No other part asks which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from anyio.abc import TaskGroup

from .._commits import Writer
from .._journal import LocalWrites
from .._restore import Rows
from .._values import DispatchStatistics
from ..stores import Changes, Store, StoredRequest, StoredTick


class Membership(Protocol):
    """The membership of one scheduler among the schedulers that have its store."""

    is_patient: bool
    """Whether we ask a store that does not answer at our start until it does: others run its jobs meanwhile."""

    reads_beside: bool
    """Whether rows are read over connections of their own, which no commit delays."""

    async def join(self) -> None:
        """Take our part of the store, which is open. Raises StoreError.

        Called again if others take it from us before we have read it.
        """

    def rows(self) -> Rows:
        """Return all jobs of the store, ours first."""

    def cut_off(self) -> list[StoredTick]:
        """Return ticks of ours that ran when their process died."""

    def owed(self) -> list[StoredTick]:
        """Return ticks of ours that will be tried again."""

    def begin(self, group: TaskGroup) -> None:
        """Take part from now on: the store has been read. Tasks run in `group`."""

    def hint(self) -> None:
        """Look around soon: another node has changed something. Any thread."""

    def give_away(self) -> None:
        """Give idle jobs to others from now on: we are stopping, and the runs take long."""

    def end(self) -> None:
        """Take up nothing more. Our jobs stay ours until `close`."""

    def close(self) -> None:
        """Leave, once the last commit is durable: others may have all our jobs. Any thread."""

    def abandon(self) -> None:
        """Give up all jobs: others have taken the store from us while we joined. Any thread."""

    def queue_statistics(self) -> DispatchStatistics | None:
        """Return the statistics of the queue. None: there is none."""


class Others(Protocol):
    """All others that have the store, as polls deal with them. On the loop."""

    asker: Writer
    """A writer that asks the store for changes."""

    tell_of_news: bool
    """Whether we are told as soon as there is anything to ask for."""

    def noting(self) -> AbstractContextManager[LocalWrites]:
        """Note changes here while the store is asked. Nothing, if no commit comes in between."""

    def before_poll(self) -> None:
        """Tell the store which requests of others are known."""

    def look(self) -> None:
        """Read what has become of our requests to others."""

    def carry_out(self, request: StoredRequest) -> bool:
        """Carry out a request for a job of ours. False: others have it."""

    def leave(self, requests: list[StoredRequest]) -> None:
        """Handle requests for jobs that others have, or no node: all since the last call."""

    def reread(self, job_ids: Collection[str]) -> Changes:
        """Read these rows again, in the line of the commits: some were written here while a page was read."""

    def close(self) -> None:
        """Stop asking. Any thread."""


class NoFleet:
    """The membership of a scheduler that shares no store. `hint` polls it soon."""

    is_patient = False
    reads_beside = False

    def __init__(self, store: Store, hint: Callable[[], object]) -> None:
        self._store = store
        self._hint = hint

    async def join(self) -> None:
        """Do nothing: all is ours."""

    def rows(self) -> Rows:
        """Return all jobs of the store."""
        return self._store.load()

    def cut_off(self) -> list[StoredTick]:
        """Return all ticks that ran when their process died."""
        return self._store.running()

    def owed(self) -> list[StoredTick]:
        """Return all ticks that will be tried again."""
        return self._store.owed()

    def begin(self, group: TaskGroup) -> None:
        """Do nothing."""

    def hint(self) -> None:
        """Poll soon. Any thread."""
        self._hint()

    def give_away(self) -> None:
        """Do nothing: there is no other node."""

    def end(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def abandon(self) -> None:
        """Do nothing."""

    def queue_statistics(self) -> DispatchStatistics | None:
        """Return None: there is no queue."""
        return None


class Nobody:
    """No others: only people may change rows. The store is asked between commits."""

    tell_of_news = False

    def __init__(self, writer: Writer) -> None:
        self.asker = writer

    def noting(self) -> AbstractContextManager[LocalWrites]:
        """Return empty notes."""
        return nullcontext(LocalWrites(set(), {}))

    def before_poll(self) -> None:
        """Do nothing."""

    def look(self) -> None:
        """Do nothing."""

    def carry_out(self, request: StoredRequest) -> bool:  # noqa: ARG002 - there are no requests
        """Return True: it is done."""
        return True

    def leave(self, requests: list[StoredRequest]) -> None:
        """Do nothing."""

    def reread(self, job_ids: Collection[str]) -> Changes:  # noqa: ARG002 - an answer between commits has no newer rows
        """Return that nothing else has changed."""
        return Changes()

    def close(self) -> None:
        """Do nothing: the writer must still end its commits."""
