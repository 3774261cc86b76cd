"""The protocol of executions: starts of jobs that wait in an external queue.

A job in such a queue has no node between two ticks. Its next start is an execution, a row of the store; the queue holds
only its name, job and instant. The row is written first, with the job's state. The execution then goes into the queue,
and the next commit writes its position. When it comes out, its row decides: only a live one is taken. A job has at most
one live (pending or scheduled) and one taken execution.

    pending -> scheduled -> taken -> done
    pending | scheduled -> skipped | superseded   it will not run: skipped, or replaced
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from attrs import frozen

from ._rows import DONE, PENDING, SCHEDULED, SKIPPED, SUPERSEDED, Execution, Planned, StoredJob, StoredState, StoredTick

LIVE: Final = frozenset({PENDING, SCHEDULED})

PARTS: Final = 16
"""Parts of all jobs. One node at a time audits a part."""


@frozen
class Taken:
    """A job that is ours until released, with its cut-off ticks."""

    job: StoredJob
    state: StoredState | None
    running: tuple[StoredTick, ...] = ()
    owed: tuple[StoredTick, ...] = ()


class NotTaken(Enum):
    """Why an execution from a queue must not run."""

    SUPERSEDED = SUPERSEDED
    SKIPPED = SKIPPED
    DONE = DONE
    RUNNING = "running"
    """A living node, perhaps this one, has its job."""
    LOCKED = "locked"
    UNKNOWN = "unknown"
    """The execution or its job is gone."""


class Standing(NamedTuple):
    """A job's rows. `owes`: a tick must be tried again."""

    id: str
    job: StoredJob | None
    state: StoredState | None
    live: Execution | None
    owes: bool = False


@frozen(kw_only=True)
class Fetched:
    """A job taken out of its turn, ours until released. `due_us`: our execution, in no queue.

    `live`: the execution that still waits.
    """

    taken: Taken
    due_us: int
    live: Execution | None


Decide = Callable[[Standing], Planned | None]
"""Return what to plan for a job, if anything. No errors, no I/O."""


@frozen(kw_only=True)
class Mended:
    """Changes by `reconcile` or `audit`. `planned`: new executions. `gone`: executions that gave way."""

    planned: tuple[Execution, ...] = ()
    gone: tuple[Execution, ...] = ()


@frozen(kw_only=True)
class Audited(Mended):
    """The result of auditing one part. `jobs`: how many are not paused.

    `orphans`: executions pending again after their server or node lost them.
    """

    jobs: int = 0
    orphans: int = 0


class Executions(Protocol):
    """The methods of executions. Synchronous; each raises like Store, and has then changed nothing.

    The committing thread calls them. `Batch` writes executions too.
    """

    def take(self, ticks: Sequence[tuple[str, int]]) -> list[Taken | NotTaken]:
        """Take these ticks, each (job id, due in microseconds), with their jobs. Answers in that order.

        Repeated, it answers the same. A locked row delays no other execution.
        """

    def fetch(self, job_ids: Sequence[str], now_us: int) -> list[Fetched | NotTaken]:
        """Take these jobs, each once, out of their turn, because an act waits. Answers in that order.

        Repeated, it answers the same. A queued execution stays queued and live.
        """

    def waiting(
        self, status: str, *, before_us: int, after: tuple[int, str] = (-1, ""), limit: int = 1_000
    ) -> list[Execution]:
        """Return PENDING or SCHEDULED executions due before `before_us`, soonest first.

        `after`: the (due_us, job_id) at which the last page ended.
        """

    def taken(self) -> list[Execution]:
        """Return the executions that we have."""

    def of_job(self, job_id: str) -> list[Execution]:
        """Return a job's executions, latest due first."""

    def wheres(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Return the labels of these jobs, if any, by job id."""

    def reconcile(self, job_ids: Sequence[str], decide: Decide) -> Mended:
        """Let `decide` plan for these jobs, except jobs taken by living nodes.

        Waits for other writers. A plan is written only while its job is as `decide` saw it.
        """

    def audit(self, part: int, *, now_us: int, instance: str | None, decide: Decide) -> Audited | None:
        """Find what is broken in one part of all jobs, and mend it. None: another audit is at this part.

        `part`: 0 to PARTS - 1. `instance`: of the queue's server; executions in another server are lost. None: none are
        lost, as when a server's log keeps its ticks over a restart.

        A dead node's taken execution is lost too, and its further plans give way. Lost executions become pending.

        `decide` is asked for jobs with neither a pause nor a live execution, for paused jobs with one, and after a
        change of schedule. Live executions of deleted jobs are superseded. Locked rows are passed over. Jobs without a
        pause are stamped with `now_us`.
        """

    def last_audit(self, job_id: str) -> int | None:
        """Return when the job was last audited; None: never."""

    def unaudited(self, since_us: int, *, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return jobs without a pause or an audit since then, and their last audits, None first."""
