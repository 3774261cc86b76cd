"""Shards: the part of a shared store's jobs that is ours, and how parts come to us and go to others.

Every agent knows all jobs. Those of its own shards stand in its heap; the others do nothing here. Once a second, and
when another agent gives a hint, it renews its lease and looks around:

    a lease has ended            -> bury that agent: its shards are nobody's
    nobody has a shard of ours   -> claim it
    we have a new shard          -> read its jobs: what is due is planned, what ran when its agent died is a crash
    a shard of ours is another's -> once none of its jobs runs: stop them, flush what is noted of them, hand it on

Which agent a shard belongs to follows from who is there, so all agents agree without a word. Lives on the loop; the
store is asked in threads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from logging import getLogger
from typing import Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync

from timerqueue import OUT, Alarm

from .._jobs import Job
from .._loop import Core
from .._restore import Crashes, Intake, Lost, Reconciler, leave_to_others, lost_by_job
from .._starts import REMOVED
from ..stores import (
    Shares,
    Sharing,
    StoredJob,
    StoredState,
    StoreError,
    StoreTakenOver,
    View,
    rightful_owners,
    shard_of,
)
from .commits import Commits
from .writer import Writer

logger = getLogger(__name__)
T = TypeVar("T")

EVERY: Final = 1.0
"""Seconds from one look around to the next: a third of a lease."""

PASSES: Final = 10
BETWEEN_PASSES: Final = 0.02
"""How often, and after how many seconds, shards are looked at again in one round whose jobs were running."""

SLICE: Final = 100
DIED: Final = "the process died under it, and its job has been removed since"


class Shards:
    """The shards of one scheduler. `flush` returns once all that was noted until then is durable."""

    def __init__(
        self,
        sharing: Sharing,
        shares: Shares,
        writer: Writer,
        *,
        core: Core,
        commits: Commits,
        crashes: Crashes,
        reconciler: Reconciler,
        intake: Intake,
    ) -> None:
        self._sharing = sharing
        self._shares = shares
        self._writer = writer
        self._core = core
        self._commits = commits
        self._crashes = crashes
        self._reconciler = reconciler
        self._intake = intake
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._hint = anyio.Event()
        self._scope = anyio.CancelScope()

    async def join(self) -> list[int]:
        """Claim what is ours and nobody has, before anything is read. Return all that we have."""
        view = await self._ask(self._sharing.renew)
        self._shares.take(await self._claimed(view, rightful_owners(_living(view))))
        return self._shares.all()

    def hint(self) -> None:
        """Look around soon: another agent says that something has changed. Any thread."""
        self._core.loop.call_soon(self._wake)

    def end(self) -> None:
        """Let `run` return."""
        self._scope.cancel()

    async def run(self) -> None:
        """Keep our lease and our part until `end`, or until we have been buried."""
        with self._scope:
            await self._run()

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except StoreTakenOver as exc:
                self._commits.failed(exc)
                return
            except StoreError as exc:
                logger.warning("the other agents cannot be seen: %s", exc)
            self._hint = anyio.Event()
            with anyio.move_on_after(EVERY):
                await self._hint.wait()

    async def _look(self) -> None:
        """Do what the others' coming and going asks for."""
        view = await self._ask(self._sharing.renew)
        dead = [peer.epoch for peer in view.peers if peer.left < 0]
        if dead and await self._ask(lambda: self._sharing.bury(dead)):
            logger.warning("agents whose leases have ended are buried: %s", _names(view, dead))
            view = await self._ask(self._sharing.renew)
        owners = rightful_owners(_living(view))
        claimed = await self._claimed(view, owners)
        ours = {shard for shard, owner in enumerate(view.owners) if owner == view.me} | set(claimed)
        await self._take(sorted(ours.difference(self._shares.all())))
        await self._hand_on({shard: owners[shard] for shard in self._shares.all() if owners[shard] != view.me})

    async def _claimed(self, view: View, owners: Sequence[int]) -> list[int]:
        """Claim the shards that nobody has and that are ours by right."""
        free = [shard for shard, owner in enumerate(view.owners) if not owner and owners[shard] == view.me]
        return await self._ask(lambda: self._sharing.claim(free)) if free else []

    # -- what comes to us ----------------------------------------------------------------------------------------------

    async def _take(self, shards: list[int]) -> None:
        """Take up the jobs of shards that have become ours where they stand."""
        if not shards:
            return
        sharing, intake = self._sharing, self._intake
        rows = await self._in_turn(lambda: list(chain.from_iterable(sharing.load(shards))))
        crashes = intake.ticks(await self._in_turn(lambda: sharing.running(shards)))
        owed = intake.ticks(await self._in_turn(lambda: sharing.owed(shards)))
        lost = lost_by_job(crashes, owed)
        self._shares.take(shards)
        for number, (raw, state) in enumerate(rows):
            self._take_up(raw, state, lost.pop(raw.id, None))
            if not number % SLICE:
                await checkpoint()
        for rest in lost.values():
            self._crashes.without_job(rest, DIED, REMOVED)
        logger.info("%d shards with %d jobs are ours now, %d in all", len(shards), len(rows), len(self._shares.all()))

    def _take_up(self, raw: StoredJob, state: StoredState | None, lost: Lost | None) -> None:
        row = self._intake.job(raw)
        if row is not None:
            self._reconciler.take_over(row, self._intake.state(state), lost or Lost())

    # -- what goes to others -------------------------------------------------------------------------------------------

    async def _hand_on(self, wanted: dict[int, int]) -> None:
        """Give shards of ours to whom they belong, those first of which no job runs."""
        if not wanted:
            return
        jobs = await self._jobs_of(wanted)
        for _ in range(PASSES):
            await self._hand_on_idle(wanted, jobs)
            if not wanted:
                return
            await self._core.clock.sleep(BETWEEN_PASSES)

    async def _hand_on_idle(self, wanted: dict[int, int], jobs: dict[int, list[Job]]) -> None:
        idle = [shard for shard in wanted if all(_is_idle(job) for job in jobs[shard])]
        for shard in idle:
            for job in jobs[shard]:
                self._halt(job)
        await self._flushed()
        ready = [shard for shard in idle if all(_is_idle(job) and not _is_armed(job) for job in jobs[shard])]
        for shard in set(idle).difference(ready):
            for job in jobs[shard]:
                self._go_on(job)
        self._shares.give(ready)
        for shard in ready:
            for job in jobs[shard]:
                leave_to_others(job)
        to: defaultdict[int, list[int]] = defaultdict(list)
        for shard in ready:
            to[wanted.pop(shard)].append(shard)
        for agent, shards in to.items():
            await self._in_turn(lambda agent=agent, shards=shards: self._sharing.hand_on(shards, agent))  # type: ignore[misc]
            logger.info("%d shards are handed on", len(shards))

    async def _jobs_of(self, shards: Iterable[int]) -> dict[int, list[Job]]:
        """The stored jobs of these shards."""
        found: dict[int, list[Job]] = {shard: [] for shard in shards}
        for number, job in enumerate(self._core.jobs.jobs()):
            if job.task is not None and (shard := shard_of(job.id)) in found:
                found[shard].append(job)
            if not number % SLICE:
                await checkpoint()
        return found

    def _halt(self, job: Job) -> None:
        """Let nothing of it start for now. Where it stands is not touched."""
        for alarm in _alarms(job):
            self._core.queue.disarm(alarm)

    def _go_on(self, job: Job) -> None:
        """Let it start again as it would have."""
        for alarm in _alarms(job):
            if alarm.slot == OUT and (alarm is not job or job.due_us is not None):
                self._core.queue.arm(alarm, alarm.due)

    # -- the store -----------------------------------------------------------------------------------------------------

    async def _ask(self, call: Callable[[], T]) -> T:
        """Ask over the connection of the lease, which no commit holds up."""
        return await run_sync(call, abandon_on_cancel=True, limiter=self._one_at_a_time)

    async def _in_turn(self, call: Callable[[], T]) -> T:
        """Ask in the line of the commits: what was sent before is durable then."""
        done, answer, trouble = anyio.Event(), list[T](), list[Exception]()

        def answered(found: T, error: Exception | None) -> None:
            (answer.append(found) if error is None else trouble.append(error))
            done.set()

        self._writer.submit(call, answered)
        await done.wait()
        if trouble:
            raise trouble[0]
        return answer[0]

    async def _flushed(self) -> None:
        done = anyio.Event()
        self._core.journal.flush(lambda _error: done.set())
        await done.wait()

    def _wake(self) -> None:
        self._hint.set()


def _living(view: View) -> list[int]:
    return [peer.epoch for peer in view.peers if peer.left >= 0]


def _names(view: View, epochs: Iterable[int]) -> str:
    return ", ".join(peer.name for peer in view.peers if peer.epoch in set(epochs))


def _alarms(job: Job) -> list[Alarm]:
    return [job, *(alarm for alarm in (job.retry, job.owed) if alarm is not None)]


def _is_idle(job: Job) -> bool:
    """Whether nothing of the job goes on, or waits for what goes on."""
    return not job.runs and not job.backlog and not job.threads and not job.asked


def _is_armed(job: Job) -> bool:
    return any(alarm.slot != OUT for alarm in _alarms(job))
