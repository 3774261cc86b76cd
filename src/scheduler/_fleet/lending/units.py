"""Units of the fleet's limits: which are lent to us, and which work waits for more.

    work was refused                 -> a round sends what waits here, and since when
    another node has waited longer   -> we owe it units, which go back when their runs have ended
    units have been idle for a while -> they go back
    our lease is not sure            -> nothing begins with units, and runs that use units are cancelled

Until a round is answered no more units may be used than at its sending, because its answer may be lost. On the loop; a
writer asks the store in its own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from logging import getLogger
from math import inf
from typing import Final

from timerqueue import LifecycleError, Rests, Timer

from ..._commits import Writer
from ..._loop import Core
from ..._runs import Run
from ..._values import Cause
from ...stores import Ask, Lending, Lent, StoreError, StoreTakenOver, Wish
from .allotment import Allotment
from .demand import bounded, wishes_of

logger = getLogger(__name__)

LOOK_S: Final = 0.1
"""Seconds between looks."""

MIN_ROUND_S: Final = 0.01
"""Seconds between rounds at least, and between looks while we owe units."""

REPEAT_S: Final = 0.4
"""Seconds after which wishes are repeated: the others forget them."""

UNHINTED_LOOK_S: Final = 1.0
"""Seconds between looks who waits for our units, without hints."""

MAX_WAITING: Final = 100


class Units:
    def __init__(
        self,
        lending: Lending,
        sizes: Mapping[str, int],
        *,
        rests: Rests,
        writer: Writer,
        core: Core,
        holds_lease: Callable[[], bool],
        tried: Callable[[Exception | None], object],
    ) -> None:
        self._lending = lending
        self.sizes = dict(sizes)
        self._rests = rests
        self._writer = writer
        self._core = core
        self._pool = core.pool
        self._holds_lease = holds_lease
        self._tried = tried
        self._accounts: dict[str, Allotment] = {}
        self._epoch = 0
        self._has_begun = False
        self._is_asking = False
        self._is_to_declare = True
        self._is_lost = False
        self._is_hinted = False
        self._is_wanted = False
        self._trouble = ""
        self._said: dict[str, int] = {}
        self._sent_at = 0.0  # long ago, because a wish may come before the first round
        self._timer: Timer | None = None
        self._next = inf
        rests.tell(self._rested)
        core.pool.lend(self.sizes, self)
        lending.hear(partial(core.loop.call_soon, self._hear))

    def begin(self) -> None:
        self._has_begun = True
        self._declare()
        self._arm(self._core.monotonic())

    def resize(self, sizes: Mapping[str, int]) -> None:
        self.sizes.update(sizes)
        for name, account in self._accounts.items():
            account.size, account.window = self._size_of(name), self._rests.seconds_of(name)
        self._declare()
        self._is_to_declare = True
        self._arm(self._core.monotonic())

    def leave(self) -> None:
        """Any thread."""
        self._has_begun = False
        if self._writer.close(LOOK_S, self._lending.give_back):
            with suppress(StoreError):
                self._lending.give_back()

    # -- what the pool asks --------------------------------------------------------------------------------------------

    def usable(self, name: str) -> int:
        account = self._accounts.get(name)
        if account is None or self._epoch != self._lending.epoch or not self._holds_lease():
            return 0
        return account.usable()

    def refused(self, name: str) -> None:
        if name not in self._accounts:
            self._accounts[name] = Allotment(self._size_of(name), self._rests.seconds_of(name))
        self._is_wanted = True
        self._arm(self._sent_at + MIN_ROUND_S)

    def _rested(self) -> None:
        if any(account.owed for account in self._accounts.values()):
            self._arm(self._sent_at + MIN_ROUND_S)

    # -- looks ---------------------------------------------------------------------------------------------------------

    def _arm(self, at: float) -> None:
        if self._is_asking or not self._has_begun or at >= self._next:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._next = at
        with suppress(LifecycleError):
            self._timer = self._core.queue.push(at, self._look)

    def _hear(self) -> None:
        self._is_hinted = True
        if self._accounts:
            self._arm(self._sent_at + MIN_ROUND_S)

    def _look(self) -> None:
        self._timer, self._next, self._is_wanted = None, inf, False
        if self._is_asking or not self._has_begun:
            return
        now = self._core.monotonic()
        if self._epoch != self._lending.epoch:
            self._epoch, self._is_to_declare = self._lending.epoch, True
            for account in self._accounts.values():
                account.forget()
        if not self._epoch or not self._holds_lease():
            self._cut_off()
        else:
            if self._is_lost:
                self._is_lost = False
                self._pool.units_came(list(self._accounts))
            asked = self._asks(now)
            if asked or self._is_to_declare:
                self._send(asked, now)
        self._arm_next(now)

    def _arm_next(self, now: float) -> None:
        if any(account.owed and not account.window for account in self._accounts.values()):
            self._arm(now + MIN_ROUND_S)
        elif self._accounts:
            self._arm(now + max(LOOK_S, 10 * (self._core.monotonic() - now)))
        elif self._is_to_declare or self._is_lost:
            self._arm(now + LOOK_S)

    def _cut_off(self) -> None:
        """Stop using units: the others may take us for dead, and lend them elsewhere."""
        if not self._is_lost:
            self._is_lost = True
            logger.warning("nothing begins that needs units of the fleet's limits, until our lease is renewed")
        for run in self._core.runs.all():
            if run.started is not None and self._uses_units(run):
                run.terminate(Cause.LEASE)

    def _uses_units(self, run: Run) -> bool:
        """A run needs units of a rate only at its beginning."""
        names = {name for needs in run.all_needs() for name, _ in needs}
        return any(self._pool.is_lent(name) and not self._rests.seconds_of(name) for name in names)

    def _asks(self, now: float) -> dict[str, Ask]:
        wishes = self._wishes()
        is_hinted, self._is_hinted = self._is_hinted, False
        asked: dict[str, Ask] = {}
        for name, account in list(self._accounts.items()):
            used, wished = self._pool.used_of(name), wishes.get(name, ())
            idle = max(0, account.held - used)
            spare = account.idle_too_long(idle, now)
            said_before = now - account.asked_at
            is_news = bool(wished) and not account.lacks
            if (
                is_news
                or (wished != account.wishes and said_before >= LOOK_S)
                or (wished and (is_hinted or said_before >= REPEAT_S))
                or (account.held and (is_hinted or said_before >= UNHINTED_LOOK_S))
                or spare
                or (idle and account.owed)
                or account.most < inf
            ):
                asked[name] = Ask(
                    account.size, used, wished, keeps=idle - spare, is_news=is_news, window=account.window
                )
            elif not (account.held or used or wished):
                del self._accounts[name]
        return asked

    def _wishes(self) -> dict[str, tuple[Wish, ...]]:
        us = self._core.timeline.us
        idle = {name: account.held - self._pool.used_of(name) for name, account in self._accounts.items()}
        wanted = wishes_of(self._pool.waiting_for_lent(MAX_WAITING), idle, self._pool.is_lent)
        for name in wanted.keys() - self._accounts.keys():
            self._accounts[name] = Allotment(self._size_of(name), self._rests.seconds_of(name))
        return {
            name: bounded((Wish(us(rank, steady=False), units) for rank, units in wishes), self._accounts[name].size)
            for name, wishes in wanted.items()
        }

    def _declare(self) -> None:
        self._lending.declare(self.sizes, {name: self._rests.seconds_of(name) for name in self.sizes})

    def _size_of(self, name: str) -> int:
        return self.sizes.get(name) or self.sizes[f"{name.partition(':')[0]}:*"]

    # -- rounds --------------------------------------------------------------------------------------------------------

    def _send(self, asked: Mapping[str, Ask], now: float) -> None:
        for name, ask in asked.items():
            self._accounts[name].sent(ask.used, ask.wishes, now)
        self._sent_at, self._is_asking, self._is_to_declare = now, True, False
        self._writer.submit(lambda: self._lending.round(asked), partial(self._answered, self._epoch))

    def _answered(self, epoch: int, lent: Mapping[str, Lent] | None, error: Exception | None) -> None:
        self._is_asking = False
        self._tried(error)
        now = self._core.monotonic()
        if lent is None or error is not None or epoch != self._lending.epoch:
            self._failed(error)
            self._arm(now + LOOK_S)
            return
        self._trouble = ""
        more = []
        for name, account in self._accounts.items():
            if name in lent:
                before = account.usable()
                account.answered(lent[name])
                self._rests.lengthen(name, lent[name].window)
                self._compare(name, account.size, lent[name].size)
                if account.usable() > before:
                    more.append(name)
        if more:
            self._pool.units_came(more)
        if self._is_hinted or self._is_wanted:
            self._arm(self._sent_at + MIN_ROUND_S)
        self._arm_next(now)

    def _failed(self, error: Exception | None) -> None:
        self._is_to_declare = True
        for account in self._accounts.values():
            account.wishes = ()
        if error is not None and not isinstance(error, StoreError):
            logger.error("units could not be borrowed", exc_info=error)
        elif error is not None and str(error) != self._trouble:
            self._trouble = str(error)
            logger.log(20 if isinstance(error, StoreTakenOver) else 30, "units cannot be borrowed: %s", error)

    def _compare(self, name: str, ours: int, size: int) -> None:
        if size == ours:
            if self._said.pop(name, None) is not None:
                logger.info("limit %r has %d units, as all nodes say now", name, size)
        elif self._said.get(name) != size:
            self._said[name] = size
            logger.warning("limit %r has fleet(%d) here, and %d elsewhere: the lowest holds", name, ours, size)
