"""The protocol of a visit: a visitor, which is no node, audits the rows of a store.

There may be nodes or none. A visitor takes nothing over, has no jobs and no lease. It mends what is wrong in the tables
alone. Only a node can tell whether an overdue job is in its heap, so the visitor asks it. Rows are checked part by
part, each under the try-lock that all audits of this store take.
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
"""Seconds after which a start that has not begun raises a doubt whether any node has it."""


class NoTables(StoreUnusable):
    """The schema of a store has no tables of ours. `elsewhere`: schemas of the same database that have."""

    def __init__(self, schema: str, elsewhere: Iterable[str]) -> None:
        self.elsewhere = tuple(elsewhere)
        there = ", ".join(map(repr, self.elsewhere[:3])) + (" and others" if self.elsewhere[3:] else "")
        advice = f"there are some in {there}" if there else "let an agent open the store first"
        super().__init__(f"schema {schema!r} holds no tables of timerqueue: {advice}")


class Doubt(Enum):
    """Why it is doubtful whether the node of a job knows what the rows say."""

    LATE = "late"
    """It should have started long ago, and no run of it has begun. It may wait for room."""
    NOT_PLANNED = "without a next start"
    """It starts by itself, and the rows do not say when."""
    NOBODY_RUNS = "run by nobody"
    """A record says that it runs, on a node that is gone."""

    @property
    def key(self) -> str:
        """The doubt as a word without spaces, for JSON: "nobody_runs"."""
        return self.name.lower()


class Doubted(NamedTuple):
    """A doubtful job. `owner`: the epoch of the node that has it; None: none has it, or none can be asked."""

    job_id: str
    doubt: Doubt
    due_us: int | None
    owner: int | None


class Audience(NamedTuple):
    """A node's answer about a job. `reason`: what was wrong, and is mended; None: nothing."""

    job_id: str
    is_done: bool
    reason: str | None


@frozen
class Looked:
    """The findings in one part of all jobs: how many jobs without a pause it has, and which are doubtful."""

    jobs: int
    doubted: tuple[Doubted, ...] = ()


class Visit(Protocol):
    """The verbs of a visitor. Synchronous. Each raises what Store's verbs raise. One thread at a time."""

    @property
    def executions(self) -> Executions:
        """The executions, of which a visitor takes none."""

    def now_us(self) -> int:
        """Return the time of the store's clock."""

    def is_queued(self) -> bool:
        """Whether jobs wait in a queue outside of the nodes."""

    def ended(self) -> dict[int, int]:
        """Return the nodes whose leases ended long ago by the store's clock: by epoch, when, in UTC microseconds.

        Just after a step of that clock, they may be healthy nodes that renew their leases.
        """

    def bury(self, ended: Mapping[int, int]) -> list[str]:
        """Remove those of these nodes whose leases ended then and have not been renewed. Return their names."""

    def look(self, part: int, *, late_us: int) -> Looked | None:
        """Return the doubtful jobs of one part, and stamp what was checked. None: another audit is at this part."""

    def ask(self, doubted: Iterable[Doubted]) -> list[int]:
        """Ask the nodes of these jobs to check them. Return the numbers of the requests."""

    def answers(self, numbers: Sequence[int]) -> list[Audience]:
        """Return what has become of these requests."""

    def withdraw(self, numbers: Sequence[int]) -> None:
        """Withdraw requests without an answer."""

    def placed(self, rows: Iterable[Placed]) -> None:
        """Write the positions of executions in their queue."""
