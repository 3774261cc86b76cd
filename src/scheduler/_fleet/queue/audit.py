"""A node's audit of a queue against its store: each job that should start has one execution in the queue.

Executions that are missing, wrong, late or stuck are put again. If one stands there twice, it runs once: its row says
which.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from logging import getLogger
from typing import Final

import anyio
from attrs import define

from ..._commits import Writer, in_turn
from ..._loop import Core
from ..._plan import instant_at
from ..._values import Audit, AuditEnded, AuditStarted
from ...queues import QueueUnavailable
from ...stores import PARTS, PENDING, SCHEDULED, Audited, Decide, Execution, Planned, Standing as At, StoreError
from .dispatch import Dispatch
from .overdue_scan import SCAN_S as LOOK_EVERY, OverdueScan
from .routing import Wheres

logger = getLogger(__name__)

AUDIT_S: Final = 300.0
"""Seconds."""

SETTLED: Final = 2_000_000
"""Microseconds after which no node will put a pending execution."""

LONG_PART: Final = 0.05
"""Seconds, from which on an audit rests after a part: commits and takes stand in the same line."""

PAGE: Final = 1_000
FOREVER: Final = 2**62


class QueueAudit:
    """On the loop."""

    def __init__(self, dispatch: Dispatch, core: Core, *, store_line: Writer, queue_line: Writer) -> None:
        self._dispatch = dispatch
        self._store_line = store_line
        self._queue_line = queue_line
        self._core = core
        self._looking = OverdueScan(dispatch, core, store_line=store_line, queue_line=queue_line)
        self._scope: anyio.CancelScope | None = None  # made on the loop, because a scheduler may be made anywhere
        self._waiting: anyio.CancelScope | None = None
        self._is_soon = False
        self._unsettled_us: int | None = None
        self._is_over = False

    def end(self) -> None:
        self._is_over = True
        if self._scope is not None:
            self._scope.cancel()

    def hint(self) -> None:
        """Audit soon: a buried node may not have put its last plans."""
        self._is_soon = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def run(self) -> None:
        with anyio.CancelScope() as self._scope:
            while not self._is_over:
                try:
                    await self.audit()
                except (StoreError, QueueUnavailable) as exc:
                    logger.warning("the queue is not audited now: %s", exc)
                except Exception:
                    logger.exception("an audit of the queue has failed; the next one comes in %g s", AUDIT_S)
                await self._wait()

    async def _wait(self) -> None:
        next_audit = self._core.monotonic() + AUDIT_S
        if self._unsettled_us is not None:
            await self._look_at_unsettled(self._unsettled_us)
        while not self._is_soon and self._core.monotonic() < next_audit:
            with anyio.CancelScope() as self._waiting:
                await self._core.clock.sleep(LOOK_EVERY)
            if not self._is_soon:
                self._dispatch.look_at_removed()
                self._dispatch.look_at_forgotten()
                await self._look_at_overdue()
        if self._is_soon:
            self._is_soon = False
            await self._core.clock.sleep(SETTLED * 1e-6)

    async def _look_at_unsettled(self, before_us: int) -> None:
        await self._core.clock.sleep(SETTLED * 1e-6)
        try:
            await self._put_pending(before_us)
        except (StoreError, QueueUnavailable) as exc:
            logger.debug("what is pending is not looked for now: %s", exc)

    async def _look_at_overdue(self) -> None:
        before = self._dispatch.missing
        try:
            await self._looking.overdue()
        except (StoreError, QueueUnavailable) as exc:
            logger.debug("what is overdue is not looked for now: %s", exc)
        except Exception:
            logger.exception("what is overdue could not be looked for")
        if missing := self._dispatch.missing - before:
            logger.info("%d executions were overdue and not in the queue, and have been put", missing)

    async def audit(self) -> int:
        """Return how many executions were put again. Raises StoreError and QueueUnavailable.

        Listeners hear of its end even if it fails.
        """
        core, before, found = self._core, self._dispatch.missing, _Found(self._dispatch.decide)
        at, began = core.clock.wall(), core.monotonic()
        core.listeners.tell(AuditStarted(instant_at(at), AUDIT_S))
        try:
            await self._audit(found)
        except (StoreError, QueueUnavailable) as exc:
            found.trouble = str(exc)
            raise
        finally:
            put_again = self._dispatch.missing - before - found.planned
            core.listeners.tell(AuditEnded(found.audit(at, put_again, core.monotonic() - began)))
        missing = self._dispatch.missing - before
        if missing:
            logger.info("%d executions were missing in the queue, and have been put", missing)
        return missing

    async def _audit(self, counts: _Found) -> None:
        dispatch = self._dispatch
        # raises if the queue does not answer, before anything is written
        await in_turn(self._queue_line, dispatch.queue.instance)
        now_us = self._now_us()
        orphans = 0
        for part in range(PARTS):
            began = self._core.monotonic()
            audited = await in_turn(self._store_line, partial(self._audit_part, part, now_us, counts))
            took = self._core.monotonic() - began
            if audited is not None:
                found, wheres = audited
                counts.add(found)
                orphans += found.orphans
                self._dispatch.missing += len(found.planned)
                dispatch.mended(found, wheres)
            if took > LONG_PART:
                await self._core.clock.sleep(took)
        self._unsettled_us = None
        await self._put_pending(now_us if orphans else now_us - SETTLED)
        await self._look_at_scheduled()

    def _audit_part(self, part: int, now_us: int, counts: _Found) -> tuple[Audited, Wheres] | None:
        """In the store's line."""
        dispatch = self._dispatch
        found = dispatch.executions.audit(part, now_us=now_us, instance=None, decide=counts.decide)
        return None if found is None else (found, dispatch.routing.asked(found.planned))

    async def _put_pending(self, before_us: int) -> None:
        await self._page(PENDING, lambda rows, wheres: self._put_orphans(rows, wheres, before_us))

    async def _put_orphans(self, rows: Sequence[Execution], wheres: Wheres, before_us: int) -> None:
        publisher, tick = self._dispatch.publisher, self._dispatch.routing.tick
        orphans = [tick(row, wheres) for row in rows if row.made_us < before_us]
        if len(orphans) < len(rows):
            self._unsettled_us = self._now_us()
        self._dispatch.missing += publisher.put([(each, None) for each in orphans])
        publisher.move(orphans)

    async def _look_at_scheduled(self) -> None:
        await self._page(SCHEDULED, self._looking.look)

    async def _page(self, status: str, see: Callable[[Sequence[Execution], Wheres], Awaitable[None]]) -> None:
        after = (-1, "")
        waiting = partial(self._dispatch.executions.waiting, status, before_us=FOREVER, limit=PAGE)
        read = self._dispatch.routing.read
        while True:
            with self._dispatch.publisher.reading():
                rows, wheres = await in_turn(self._store_line, partial(read, partial(waiting, after=after)))
                await see(rows, wheres)
            if len(rows) < PAGE:
                return
            after = (rows[-1].due_us, rows[-1].job_id)

    def _now_us(self) -> int:
        return self._core.timeline.us(self._core.monotonic(), steady=False)


@define(eq=False)
class _Found:
    plan: Decide
    has_lock: bool = False
    jobs: int = 0
    failed: int = 0
    planned: int = 0
    withdrawn: int = 0
    trouble: str | None = None

    def decide(self, standing: At) -> Planned | None:
        plan, job = self.plan(standing), standing.job
        self.failed += plan is None and standing.live is None and job is not None and job.paused is None
        return plan

    def add(self, part: Audited) -> None:
        self.has_lock = True
        self.jobs += part.jobs
        self.planned += len(part.planned)
        self.withdrawn += len({row.job_id for row in part.gone} - {row.job_id for row in part.planned})

    def audit(self, at: float, put_again: int, seconds: float) -> Audit:
        return Audit(
            at=at,
            interval=AUDIT_S,
            has_lock=self.has_lock,
            jobs=self.jobs,
            failed=self.failed,
            planned=self.planned,
            requeued=put_again,
            withdrawn=self.withdrawn,
            seconds=seconds,
            trouble=self.trouble,
        )
