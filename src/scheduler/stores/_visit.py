"""The protocol of a visit: a visitor, which is no node, audits the rows of a store.

A visitor has no jobs and no lease, takes nothing over, and mends the tables only. Only a node can tell whether an
overdue job is in its heap, so the visitor asks. Each part is checked under the try-lock of all audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from attrs import frozen

from ._executions import Executions
from ._rows import Placed
from ._store import StoreUnusable

LATE: Final = 60.0
"""Seconds after which a start that has not begun is doubtful."""


class NoTables(StoreUnusable):
    """The schema has no tables of timerqueue. `elsewhere`: schemas that have."""

    def __init__(self, schema: str, elsewhere: Iterable[str]) -> None:
        self.elsewhere = tuple(elsewhere)
        there = ", ".join(map(repr, self.elsewhere[:3])) + (" and others" if self.elsewhere[3:] else "")
        advice = f"there are some in {there}" if there else "let a node open the store first"
        super().__init__(f"schema {schema!r} holds no tables of timerqueue: {advice}")


class Doubt(Enum):
    """Why a job's node may not know what the rows say."""

    LATE = "late"
    """Its start is long past without a run. It may wait for room."""
    NOT_PLANNED = "without a next start"
    NOBODY_RUNS = "run by nobody"
    """Recorded as running on a node that is gone."""

    @property
    def key(self) -> str:
        """The doubt as one word: "nobody_runs"."""
        return self.name.lower()


class Doubted(NamedTuple):
    """A doubtful job. `owner`: its node's epoch, if any can be asked."""

    job_id: str
    doubt: Doubt
    due_us: int | None
    owner: int | None


class Audience(NamedTuple):
    """A node's answer about a job. `reason`: what was wrong and is mended, if anything."""

    job_id: str
    is_done: bool
    reason: str | None


@frozen
class Looked:
    """The findings in one part. `jobs`: how many are not paused."""

    jobs: int
    doubted: tuple[Doubted, ...] = ()


class Visit(Protocol):
    """The methods of a visitor. Synchronous; they raise like Store. One thread at a time."""

    @property
    def executions(self) -> Executions:
        """The executions; a visitor takes none."""

    def now_us(self) -> int:
        """Return the time of the store's clock."""

    def is_queued(self) -> bool:
        """Whether jobs wait in an external queue."""

    def ended(self) -> dict[int, int]:
        """Return nodes whose leases ended long ago by the store's clock: by epoch, when, in UTC microseconds.

        After a step of that clock they may be healthy.
        """

    def bury(self, ended: Mapping[int, int]) -> list[str]:
        """Remove nodes whose leases still end then. Return their names."""

    def look(self, part: int, *, late_us: int) -> Looked | None:
        """Check one part and stamp its jobs. None: another audit is at it."""

    def ask(self, doubted: Iterable[Doubted]) -> list[int]:
        """Ask these jobs' nodes to check them. Return the requests' numbers."""

    def answers(self, numbers: Sequence[int]) -> list[Audience]:
        """Return the answers to these requests."""

    def withdraw(self, numbers: Sequence[int]) -> None:
        """Withdraw unanswered requests."""

    def placed(self, rows: Iterable[Placed]) -> None:
        """Write the executions' queue positions."""
