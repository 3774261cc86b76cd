"""Membership: whether others have the store too, and what follows from that for its beginning, its end and its polls.

    NoFleet             the store is ours alone
    _fleet.Sharded      several nodes share it: each has the jobs of its shards
    _fleet.Queued       jobs come out of a queue

Nobody else asks which of them it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from anyio.abc import TaskGroup

from .._commits import Writer
from .._journal import Noted
from .._restore import Rows
from .._values import DispatchStatistics
from ..stores import Changes, Store, StoredRequest, StoredTick


class Membership(Protocol):
    """The membership of one scheduler among all that have its store."""

    is_patient: bool
    """A store that does not answer as we start is asked until it does: others run its jobs meanwhile."""

    reads_beside: bool
    """Rows are read over connections of their own, which no commit holds up."""

    async def join(self) -> None:
        """Have what is ours of the store, which is open. Called again if others take it from us before we have read it.
        Raises StoreError.
        """

    def rows(self) -> Rows:
        """All jobs of the store, those first that are ours."""

    def cut_off(self) -> list[StoredTick]:
        """Ticks of ours that ran when their process died."""

    def owed(self) -> list[StoredTick]:
        """Ticks of ours that are to be tried again."""

    def begin(self, group: TaskGroup) -> None:
        """Take part from now on: all that the store holds has been read. What goes on beside it runs in `group`."""

    def hint(self) -> None:
        """Look around soon: somebody has changed something. Any thread."""

    def give_away(self) -> None:
        """Have what nothing runs of go to others from now on: we are stopping, and what runs takes long."""

    def end(self) -> None:
        """Take up nothing more. What is ours stays so until `close`."""

    def close(self) -> None:
        """Leave, once the last commit is durable: others may have all that was ours. Any thread."""

    def abandon(self) -> None:
        """Have nothing any more: others have taken the store from us while we joined. Any thread."""

    def queue_statistics(self) -> DispatchStatistics | None:
        """The dealings with the queue; None: there is none."""


class Others(Protocol):
    """All others that have the store, as far as polls deal with them. On the loop."""

    asker: Writer
    """By it the store is asked what has been changed."""

    tell_of_news: bool
    """We are told as soon as there is anything to ask for."""

    def noting(self) -> AbstractContextManager[Noted]:
        """Know what is written here while the store is asked. Of nothing, where no commit comes in between."""

    def before_poll(self) -> None:
        """Have the store leave out what we know that others ask of us."""

    def look(self) -> None:
        """Read what has become of what we have asked of others."""

    def carry_out(self, request: StoredRequest) -> bool:
        """Do what others ask of a job of ours. False: others have it."""

    def leave(self, requests: list[StoredRequest]) -> None:
        """See to what is asked of jobs that others have, or nobody. All of it since the last call."""

    def reread(self, job_ids: Collection[str]) -> Changes:
        """Read these rows once more, in the line of the commits: some were written here while a page was read."""

    def close(self) -> None:
        """Ask nobody any more. Any thread."""


class NoFleet:
    """The membership of a scheduler that has its store for itself. `hint` polls it soon."""

    is_patient = False
    reads_beside = False

    def __init__(self, store: Store, hint: Callable[[], object]) -> None:
        self._store = store
        self._hint = hint

    async def join(self) -> None:
        """Do nothing: all is ours."""

    def rows(self) -> Rows:
        """All jobs of the store."""
        return self._store.load()

    def cut_off(self) -> list[StoredTick]:
        """All ticks that ran when their process died."""
        return self._store.running()

    def owed(self) -> list[StoredTick]:
        """All ticks that are to be tried again."""
        return self._store.owed()

    def begin(self, group: TaskGroup) -> None:
        """Do nothing."""

    def hint(self) -> None:
        """Poll soon. Any thread."""
        self._hint()

    def give_away(self) -> None:
        """Do nothing: nobody is there."""

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
    """No others: people may change rows, and that is all. The store is asked between commits."""

    tell_of_news = False

    def __init__(self, writer: Writer) -> None:
        self.asker = writer

    def noting(self) -> AbstractContextManager[Noted]:
        """Return what knows of nothing."""
        return nullcontext(Noted(set(), {}))

    def before_poll(self) -> None:
        """Do nothing."""

    def look(self) -> None:
        """Do nothing."""

    def carry_out(self, request: StoredRequest) -> bool:  # noqa: ARG002 - nobody asks for anything
        """Return True: it is done."""
        return True

    def leave(self, requests: list[StoredRequest]) -> None:
        """Do nothing."""

    def reread(self, job_ids: Collection[str]) -> Changes:  # noqa: ARG002 - what is asked between commits is so
        """Return that nothing else has changed."""
        return Changes()

    def close(self) -> None:
        """Do nothing: the writer has its commits to end."""
