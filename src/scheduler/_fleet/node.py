"""A node: one of the schedulers that share a store, with its lease and the other nodes.

The lease looks around in its own thread (lease.py). On the loop, a Keeper then moves shards or listens to a queue. A
buried node joins again under a new identity (rejoining.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from logging import getLogger
from typing import Final, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.to_thread import run_sync
from attrs import frozen

from .._commits import Commits
from .._loop import Core
from .._plan import instant_at
from .._values import AgentJoined, AgentLost
from ..stores import LEASE, Sharing, StoreError, StoreTakenOver, StoreUnavailable, View
from .lease import Lease, LeaseGuard, StoreWays
from .rejoining import RETRY, Owned, Rejoining
from .shards import WHOSE_JOBS_RUN, Unplaced

logger = getLogger(__name__)
T = TypeVar("T")

UNSETTLED_AFTER: Final = LEASE
"""Seconds without one connection, while the lease is renewed, before others get our shards."""

RESIGNS_AFTER: Final = 2 * LEASE
"""Seconds before such a node lets go of all jobs: its notes about them are not durable."""

TO_SERVE: Final = ("commits", "shards", "rests", "claims")
"""Without these connections our jobs stand still for ever."""


@frozen(eq=False, kw_only=True)
class NodeParts:
    """`on_news`: called in the lease's thread when others changed rows, or the store does not answer."""

    sharing: Sharing
    ours: Owned
    core: Core
    commits: Commits
    rejoining: Rejoining
    lease_guard: LeaseGuard
    ways: StoreWays
    on_news: Callable[[], object]


class Keeper(Protocol):
    """Takes and gives jobs. On the loop."""

    leaves_ticks: bool

    def lease_is(self, *, held: bool) -> None: ...

    async def follow(self, view: View, group: TaskGroup) -> float | None:
        """Act on the view while our lease is held. Return seconds until the next step, or None. Raises StoreError."""

    def buried(self) -> None: ...

    async def lose_all(self) -> None: ...


class Node:
    def __init__(self, parts: NodeParts, keeper: Keeper) -> None:
        core = parts.core
        self._keeper = keeper
        self._rejoining = parts.rejoining
        self._sharing = parts.sharing
        self._ours = parts.ours
        self._core = core
        self._commits = parts.commits
        self._lease_guard = parts.lease_guard
        self._heard_since = parts.lease_guard.heard_since
        self.lease = Lease(
            parts.sharing,
            parts.lease_guard,
            seen=self._seen,
            lost=self._lost,
            failed=self._failed,
            buried=self._buried,
            clock=core.clock,
        )
        self._tell_news = parts.on_news
        core.runs.marks.rely_on(self.lease.is_sure, self._is_alone)
        core.clock_guard.watch(self.lease.look, core.loop.look_at_clock, leaves=keeper.leaves_ticks)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._change = anyio.Event()
        self._scope: anyio.CancelScope | None = None  # made on the loop, because a scheduler may be made anywhere
        self._following: anyio.CancelScope | None = None
        self._is_over = False
        self._view: View | None = None
        self.turn = 0
        self._is_settled = False
        """Whether the others know that we have read the store, and give us shards."""
        self.ways = parts.ways
        self._is_cut_off = False
        self._is_leaving = False
        self._trouble: StoreTakenOver | None = None
        self._names: dict[int, str] = {}
        self._unplaced = Unplaced()

    @property
    def leaves(self) -> bool:
        return self._is_leaving or self._is_cut_off

    async def ask(self, call: Callable[[], T]) -> T:
        """Ask the store in a thread, one question at a time, not delayed by commits."""
        return await run_sync(call, abandon_on_cancel=True, limiter=self._one_at_a_time)

    async def join(self) -> View:
        """Claim free shards of ours. Called again if we are buried meanwhile: then nothing is ours."""
        self._view, self._trouble, self._names = None, None, {}
        self._ours.let_go()
        self.lease.begin(await self.ask(self.lease.turn))
        assert self._view is not None
        self._judge_clock()
        self._meet(self._view)
        return self._view

    def hint(self) -> None:
        """Look around soon. Any thread."""
        self.lease.look()

    def give_away(self) -> None:
        self._is_leaving = True
        self._change.set()

    def end(self) -> None:
        """Let `run` return. The lease is held until `close`."""
        self._is_over = True
        if self._scope is not None:
            self._scope.cancel()

    def close(self) -> None:
        """Give all jobs to others at once, before slower work. Any thread."""
        self.lease.end()
        with suppress(StoreError):  # they notice when our lease has ended
            self._sharing.leave()
        self.let_go()

    def let_go(self) -> None:
        """Any thread."""
        self.lease.end()
        self.lease.join()
        self._sharing.close()

    def go_on(self) -> None:
        self._change.set()

    async def run(self) -> None:
        with anyio.CancelScope() as self._scope:
            async with anyio.create_task_group() as group:
                while not self._is_over:
                    wait: float | None = WHOSE_JOBS_RUN
                    try:
                        with anyio.CancelScope() as self._following:
                            await self._settle()
                            wait = await self._follow(group)
                    except StoreError as exc:
                        logger.warning("shards cannot be moved: %s", exc)
                    self._look_at_ways()
                    if self._trouble is not None:
                        await self._begin_anew(self._trouble)
                        group.start_soon(self._read_again, name="scheduler rows of others")
                    with anyio.move_on_after(wait):
                        await self._change.wait()
                    self._change = anyio.Event()

    async def _settle(self) -> None:
        """Nodes of an older version would give back to us what we give them."""
        view = self._view
        stays = not self.leaves or view is None or not view.heeds_unsettled
        if stays != self._is_settled:
            await self.ask(lambda: self._sharing.settle(stays=stays))
            self._is_settled = stays
            self.lease.look()

    async def _follow(self, group: TaskGroup) -> float | None:
        self._keeper.lease_is(held=self.lease.is_held())
        view = self._view
        if view is None or not self.lease.is_held():
            return None
        self._core.runs.marks.settled()
        self._meet(view)
        self._unplaced.look(view)
        return await self._keeper.follow(view, group)

    def _look_at_ways(self) -> None:
        """Give jobs to nodes that can serve them while we cannot. If no other can, keep trying."""
        is_cut_off = self.ways.closed_for() > UNSETTLED_AFTER
        if is_cut_off != self._is_cut_off:
            self._is_cut_off = is_cut_off
            self._change.set()
            if is_cut_off:
                logger.warning("a connection to the store cannot be made: this node's shards go to others that have it")
            else:
                logger.info("the connections to the store work again: this node takes its part of the shards")
        if self.ways.closed_for(*TO_SERVE) > RESIGNS_AFTER and self._is_trouble_ours() and not self._is_leaving:
            self.lease.resign("its lease is renewed, but it cannot connect for commits or shards, and others can")

    def _is_trouble_ours(self) -> bool:
        view = self._sharing.last
        living = [] if view is None else [each for each in view.peers if each.left >= 0 and each.epoch != view.me]
        return not all(peer.is_unsettled or peer.is_off for peer in living)

    def _is_alone(self) -> bool:
        view = self._sharing.last
        return view is not None and all(each.epoch == view.me for each in view.peers)

    async def _begin_anew(self, trouble: StoreTakenOver) -> None:
        us = self._names.get(0 if self._view is None else self._view.me, "")
        logger.warning("this node has lost its part of the store, and joins again: %s", trouble)
        self._core.listeners.tell(AgentLost(instant_at(self._core.clock.wall()), us, str(trouble), is_us=True))
        await self._keeper.lose_all()
        await self._rejoining.let_go()
        self._view, self._trouble, self._names, self._is_settled = None, None, {}, False
        opened = await self._rejoining.open()
        self.ways.forget()
        self._is_cut_off = False
        self.lease.begin(0.0)
        self._commits.reopen(opened.epoch)

    async def _read_again(self) -> None:
        failures = 0
        while True:
            try:
                return await self._rejoining.read_again()
            except StoreUnavailable as exc:
                failures += 1
                logger.warning("what others have changed meanwhile is not known yet: %s", exc)
                await self._core.clock.sleep(RETRY.after(failures))
            except StoreError as exc:
                logger.warning("what others have changed meanwhile is not known: %s", exc)
                return None

    def _meet(self, view: View) -> None:
        names, tell = {peer.epoch: peer.name for peer in view.peers}, self._core.listeners.tell
        at = instant_at(self._core.clock.wall())
        for epoch in names.keys() - self._names.keys():
            if self._names or epoch == view.me:
                tell(AgentJoined(at, names[epoch], epoch == view.me))
        for epoch in self._names.keys() - names.keys():
            tell(AgentLost(at, self._names[epoch], "it has left, or its lease has ended"))
        self._names = names

    # -- what the lease says, in its thread ----------------------------------------------------------------------------

    def _seen(self, view: View, turn: int) -> None:
        if not self.lease.was_busy:
            self._core.loop.call_soon(self.ways.tried, "claims", None)
        self._core.loop.call_soon(self._look_at, view, turn)
        if view.is_news:
            self._tell_news()
        if self._view is None:  # the loop calls nothing before the first jobs are here
            self._view, self.turn = view, turn

    def _failed(self, error: StoreError) -> None:
        self._tell_news()
        self._core.loop.call_soon(self._look_at_failure, error)

    def _look_at_failure(self, error: StoreError) -> None:
        self.ways.tried("claims", error)
        self._change.set()
        self._keeper.lease_is(held=self.lease.is_held())

    def _buried(self) -> None:
        self._core.loop.call_soon(self._keeper.buried)

    def _lost(self, trouble: StoreTakenOver) -> None:
        self._core.loop.call_soon(self._give_up, trouble)

    def _look_at(self, view: View, turn: int) -> None:
        if self._view is not None and view.me < self._view.me:
            return  # the view is of an earlier incarnation
        self._view, self.turn = view, turn
        if self._heard_since != self._lease_guard.heard_since:  # the lease is renewed again after a gap
            self._heard_since = self._lease_guard.heard_since
            self._commits.try_now()
        self._judge_clock()
        self._change.set()

    def _judge_clock(self) -> None:
        if self.lease.clock_found is not None:
            skew, is_off = self.lease.clock_found
            most, is_idle = self._sharing.max_skew, self._ours.is_idle()
            self._core.clock_guard.judge(skew, is_off=is_off, most=most, is_idle=is_idle)

    def _give_up(self, trouble: StoreTakenOver) -> None:
        if self.lease.is_held():
            return  # a new incarnation holds it: we were buried while we joined
        self._trouble = trouble
        if self._following is not None:
            self._following.cancel()
        self._change.set()
