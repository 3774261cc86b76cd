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
    """Whether others have the store too.

    No other part asks which it is:

        NoFleet             the store is not shared
        _fleet.Sharded      each node has its shards' jobs
        _fleet.Queued       jobs come out of a queue
    """

    is_patient: bool
    """Whether we wait for a silent store at the start: others run its jobs."""

    reads_beside: bool
    """Whether rows have their own connections, which no commit delays."""

    async def join(self) -> None:
        """Take our part of the open store, again if others take it first. Raises StoreError."""

    def rows(self) -> Rows:
        """Ours first."""

    def cut_off(self) -> list[StoredTick]:
        """Return our ticks that ran when their process died."""

    def owed(self) -> list[StoredTick]: ...

    def begin(self, group: TaskGroup) -> None:
        """Tasks run in `group`."""

    def hint(self) -> None:
        """Any thread."""

    def give_away(self) -> None:
        """Give idle jobs to others: we stop, and runs take long."""

    def end(self) -> None:
        """Our jobs stay ours until `close`."""

    def close(self) -> None:
        """The last commit is durable: others may have our jobs. Any thread."""

    def abandon(self) -> None:
        """Others took the store while we joined. Any thread."""

    def queue_statistics(self) -> DispatchStatistics | None: ...


class Others(Protocol):
    """The other schedulers, as polls see them. On the loop."""

    asker: Writer

    tell_of_news: bool

    def noting(self) -> AbstractContextManager[LocalWrites]:
        """Note changes here while the store is asked."""

    def before_poll(self) -> None: ...

    def look(self) -> None: ...

    def carry_out(self, request: StoredRequest) -> bool:
        """False: others have the job."""

    def leave(self, requests: list[StoredRequest]) -> None:
        """Handle requests since the last call for jobs that are not ours."""

    def reread(self, job_ids: Collection[str]) -> Changes:
        """Read rows again, in line with the commits: a page missed changes here."""

    def close(self) -> None:
        """Any thread."""


class NoFleet:
    is_patient = False
    reads_beside = False

    def __init__(self, store: Store, hint: Callable[[], object]) -> None:
        self._store = store
        self._hint = hint

    async def join(self) -> None: ...

    def rows(self) -> Rows:
        return self._store.load()

    def cut_off(self) -> list[StoredTick]:
        return self._store.running()

    def owed(self) -> list[StoredTick]:
        return self._store.owed()

    def begin(self, group: TaskGroup) -> None: ...

    def hint(self) -> None:
        self._hint()

    def give_away(self) -> None: ...

    def end(self) -> None: ...

    def close(self) -> None: ...

    def abandon(self) -> None: ...

    def queue_statistics(self) -> DispatchStatistics | None:
        return None


class Nobody:
    """Only people may change rows. The store is asked between commits."""

    tell_of_news = False

    def __init__(self, writer: Writer) -> None:
        self.asker = writer

    def noting(self) -> AbstractContextManager[LocalWrites]:
        return nullcontext(LocalWrites(set(), {}))

    def before_poll(self) -> None: ...

    def look(self) -> None: ...

    def carry_out(self, request: StoredRequest) -> bool:  # noqa: ARG002 - there are no requests
        return True

    def leave(self, requests: list[StoredRequest]) -> None: ...

    def reread(self, job_ids: Collection[str]) -> Changes:  # noqa: ARG002 - an answer between commits has no newer rows
        return Changes()

    def close(self) -> None:
        """The writer must still end its commits."""
