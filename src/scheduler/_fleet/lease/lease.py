"""While the lease is renewed, the other nodes leave us our part of a shared store.

Every second or so, and by hint, its thread asks the store, in this order:

    renew, and look around       -> we have been buried: nothing starts any more, and `lost` is called
    another lease has ended      -> bury its node, and give its shards to their rightful nodes
    a shard of ours is free      -> claim it

A loop that stands still runs no jobs, so its lease is not renewed. We rely on less than the lease: it counts from the
request, ends early, and counts while the machine sleeps. Each run checks `is_sure` before it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from logging import getLogger
from threading import Thread
from typing import Final

from timerqueue import Clock, Pulse

from ..._plan import ClockVerdict, Skew, skew_of
from ...stores import LEASE, Assignment, Sharing, StoreBusy, StoreError, StoreLocked, StoreTakenOver, View
from .lease_guard import LeaseGuard
from .peer_watch import PeerWatch

logger = getLogger(__name__)

RENEWAL_S: Final = LEASE / 2.4
"""Seconds between renewals. A second one comes before we stop relying on the lease."""

MARGIN: Final = LEASE / 6
"""Seconds before the lease's end when we stop relying on it."""

RETRY_S: Final = 0.1
"""Seconds before a failed renewal is repeated."""

BEHIND: Final = 0.005
"""Seconds from another lease's end to our look."""

MOVES: Final = 0.01
"""Seconds between checks whether a busy loop moves."""

LAST_TURN: Final = 1.0


class Lease:
    """Our lease, renewed in a thread.

    `seen`: a turn's findings, and its number. `lost`: we were buried. `failed`: the store did not answer. `buried`: we
    buried a node.
    """

    def __init__(
        self,
        sharing: Sharing,
        lease_guard: LeaseGuard,
        *,
        seen: Callable[[View, int], object],
        lost: Callable[[StoreTakenOver], object],
        failed: Callable[[StoreError], object],
        buried: Callable[[], object],
        clock: Clock,
    ) -> None:
        self._sharing = sharing
        self._lease_guard = lease_guard
        self._now = lease_guard.now
        self._seen = seen
        self._lost = lost
        self._failed = failed
        self._buried = buried
        self.turns = 0
        self.clock_found: tuple[Skew, bool] | None = None
        """Our clock's skew, and whether it is too large."""
        self._skew: Skew | None = None
        self._verdict = ClockVerdict()
        self._clock = clock
        self._trouble = ""
        self._dead: list[int] = []
        self.was_busy = False
        self._is_over = False
        self._resigns: str | None = None
        self._hint = lease_guard.hint
        self._peer_watch = PeerWatch(sharing, self._hint)
        self._thread: Thread | None = None

    def is_held(self) -> bool:
        return self._lease_guard.is_held()

    def is_sure(self) -> bool:
        return self._lease_guard.is_sure()

    def begin(self, wait: float) -> None:
        """Take turns while this thread's loop moves, first in `wait` seconds."""
        self._is_over, self._resigns = False, None
        self._peer_watch.begin()
        self._thread = Thread(target=self._serve, args=[Pulse(), wait], name="scheduler lease", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._is_over = True
        self._hint.set()
        self._peer_watch.end()

    def join(self) -> None:
        """Wait for the threads, a second or two at most."""
        if self._thread is not None:
            self._thread.join(LAST_TURN)
        self._peer_watch.join(LAST_TURN)

    def look(self) -> None:
        """Any thread."""
        self._hint.set()

    def resign(self, why: str) -> None:
        """Renew no more, and call `lost`: the others bury us. Any thread."""
        self._resigns = why
        self._hint.set()

    def turn(self) -> float:
        """Return the seconds until the next turn. Raises StoreError."""
        if self._resigns is not None:
            raise StoreTakenOver(self._resigns)
        self.turns += 1
        heard = self._peer_watch.heard()
        may_wait = self._due() > RENEWAL_S / 2  # a burial may take longer than the rest of our lease
        view = self._sharing.last if self.is_sure() and may_wait and not self._trouble else None
        has_looked = view is None or not any(peer.epoch in heard for peer in view.peers)
        if view is None or has_looked:
            view, skew = self._looked()
            if self._judge_clock(skew, view):
                view, _ = self._looked(must_renew=True)  # the others must know at once
        heard = heard if view.may_heed else ()
        view = self._acted_on(view, heard)
        self._peer_watch.follow(view)
        self._seen(view, self.turns)
        ends = [peer.left + BEHIND for peer in view.peers if peer.epoch != view.me]
        return max(0.0, min([self._due(), *ends])) if has_looked else 0.0

    def _acted_on(self, view: View, heard: Collection[int]) -> View:
        """Bury and claim. If the connection or a lock is taken, the next turn tries again: only the lease is worth a
        wait.
        """
        dead = [peer for peer in view.peers if peer.left < 0 or peer.epoch in heard]
        epochs = [peer.epoch for peer in dead]
        if dead and epochs != self._dead:
            logger.warning("nodes whose leases or sessions have ended: %s", ", ".join(peer.name for peer in dead))
        self._dead = epochs
        self.was_busy = False
        try:
            if dead:
                if self._sharing.bury(epochs, heard):
                    self._buried()
                return self._sharing.last or view
            if free := _free(view):
                return view.with_ours(self._sharing.claim(free))
        except StoreError as exc:
            self._peer_watch.again(heard)
            if not isinstance(exc, StoreBusy | StoreLocked):
                raise
            logger.debug("no node is buried, and no shard claimed, in this turn: %s", exc)
            self.was_busy = isinstance(exc, StoreBusy)  # for any other error the store has answered
        return view

    def _looked(self, *, must_renew: bool = False) -> tuple[View, Skew]:
        """A renewal is a write of the store, so renew only if that is due."""
        doubts = self._lease_guard.doubts
        is_due = self._due() <= RENEWAL_S / 2 or must_renew
        told = None if self._skew is None else self._skew.told
        try:
            view = self._sharing.renew(told, is_off=self._verdict.is_off, only_look=not is_due)
        except StoreError:
            self._lease_guard.heard_since = None
            raise
        self._lease_guard.dispel(doubts)
        if is_due:
            self._lease_guard.until = view.asked + LEASE - MARGIN
        self._skew = skew_of(self._clock, view.at_us, view.answered - view.asked, self._now() - view.answered)
        return view, self._skew

    def _due(self) -> float:
        return self._lease_guard.until - (LEASE - MARGIN) + RENEWAL_S - self._now()

    def _judge_clock(self, skew: Skew, view: View) -> bool:
        others = [p.skew for p in view.peers if p.epoch != view.me and p.left >= 0 and p.skew is not None]
        is_changed = self._verdict.judge(skew, others, self._sharing.max_skew)
        self.clock_found = skew, self._verdict.is_off
        return is_changed

    def _serve(self, pulse: Pulse, wait: float) -> None:
        beats = -1
        while not self._is_over:
            self._hint.wait(wait)
            self._hint.clear()
            wait = MOVES
            if not self._is_over and (pulse.beats != beats or pulse.is_asleep()):
                beats = pulse.beats
                wait = self._take_turn()
            pulse.ask()

    def _take_turn(self) -> float:
        try:
            wait = self.turn()
        except StoreTakenOver as exc:
            has_left, self._is_over, self._lease_guard.until = self._is_over, True, 0.0
            self._peer_watch.end()
            if not has_left:
                self._lost(exc)
        except StoreError as exc:
            self._speak_of(str(exc))
            self._failed(exc)
        except Exception:
            logger.exception("the lease could not be renewed")
        else:
            self._speak_of("")
            return wait
        return RETRY_S

    def _speak_of(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            logger.warning("the lease is not renewed: %s", trouble)
        elif self._trouble and not trouble:
            logger.info("the lease is renewed again")
        self._trouble = trouble


def _free(view: View) -> list[int]:
    owners = Assignment(view)
    return [shard for shard, owner in view.shards() if not owner and owners[shard] == view.me]
