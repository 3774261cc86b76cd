"""A store that fails when you tell it to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Final, Literal, TypeVar

from ..stores import (
    Batch,
    Changes,
    Opened,
    Receipt,
    Retention,
    Store,
    StoredJob,
    StoredPause,
    StoredState,
    StoredTick,
    StoreError,
    StoreUnavailable,
)

__all__ = ["FlakyStore"]

Result = TypeVar("Result")

VERBS: Final = frozenset({"changes", "commit", "history", "load", "open", "owed", "pauses", "prune", "running"})


class FlakyStore:
    """Does what `store` does, but some calls raise `error` (by default StoreUnavailable).

    `fail_on`: which calls fail, counted from 1 over all calls of `verbs`; may be set at any time. `before_or_after`:
    "before" does nothing; "after" does the work and loses the answer. `is_immediate` False: even an immediate store is
    called from a thread. `calls`: counts by verb.
    """

    def __init__(
        self,
        store: Store,
        *,
        fail_on: int | Collection[int] = (),
        error: StoreError | None = None,
        before_or_after: Literal["before", "after"] = "before",
        verbs: Collection[str] = ("commit",),
        is_immediate: bool | None = None,
    ) -> None:
        """Raises ValueError for a verb that no store has."""
        if unknown := set(verbs) - VERBS:
            msg = f"verbs={sorted(unknown)}: a store has {', '.join(sorted(VERBS))}; close never fails"
            raise ValueError(msg)
        self.store = store
        self.fail_on = fail_on
        self.error = StoreUnavailable("FlakyStore was told to fail here") if error is None else error
        self.before_or_after = before_or_after
        self.verbs = frozenset(verbs)
        self.calls: Counter[str] = Counter()
        self._is_immediate = is_immediate

    @property
    def counted(self) -> int:
        """Calls that counted for `fail_on`."""
        return sum(self.calls[verb] for verb in self.verbs)

    @property
    def is_immediate(self) -> bool:
        """The store's answer, unless set."""
        return self.store.is_immediate if self._is_immediate is None else self._is_immediate

    def open(self, now_us: int, hint: Callable[[], None]) -> Opened:
        """See Store."""
        return self._call("open", lambda: self.store.open(now_us, hint))

    def load(self) -> Iterator[list[tuple[StoredJob, StoredState | None]]]:
        """See Store. All lists are read first."""
        return iter(self._call("load", lambda: list(self.store.load())))

    def pauses(self) -> list[StoredPause]:
        """See Store."""
        return self._call("pauses", self.store.pauses)

    def running(self) -> list[StoredTick]:
        """See Store."""
        return self._call("running", self.store.running)

    def owed(self) -> list[StoredTick]:
        """See Store."""
        return self._call("owed", self.store.owed)

    def commit(self, batch: Batch) -> Receipt:
        """See Store."""
        return self._call("commit", lambda: self.store.commit(batch))

    def changes(self) -> Changes:
        """See Store."""
        return self._call("changes", self.store.changes)

    def history(self, job_id: str | None = None, *, limit: int = 100, before_us: int | None = None) -> list[StoredTick]:
        """See Store."""
        return self._call("history", lambda: self.store.history(job_id, limit=limit, before_us=before_us))

    def prune(self, retention: Retention, now_us: int) -> int:
        """See Store."""
        return self._call("prune", lambda: self.store.prune(retention, now_us))

    def close(self) -> None:
        """See Store. Never fails."""
        self.calls["close"] += 1
        self.store.close()

    def _call(self, verb: str, call: Callable[[], Result]) -> Result:
        self.calls[verb] += 1
        fails = verb in self.verbs and self._fails_at(self.counted)
        if fails and self.before_or_after == "before":
            raise self.error
        result = call()
        if fails:
            raise self.error
        return result

    def _fails_at(self, number: int) -> bool:
        return number == self.fail_on if isinstance(self.fail_on, int) else number in self.fail_on
