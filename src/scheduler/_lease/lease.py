"""The lease: by it the other agents leave us our part of a shared store. It lives in a thread of its own.

Every second or so, and by hint, the thread asks the store, in this order:

    renew, and look around            -> we have been buried: nothing starts any more, and `lost` is called
    somebody's lease has ended        -> bury them, and give their shards to whom they belong now
    nobody has a shard that is ours   -> claim it

and hands what it has seen to the loop, which takes up what is ours and hands on what is not (shards.py). Whoever hears
the end of a session (hearing.py) buries first, and looks around then, unless its own lease is due soon. The thread
sleeps no longer than until the next lease of another ends. A loop that stands still runs no jobs, so for it nothing is
renewed: the others are to have them.

What we believe is less than what we have: the lease counts from when it was asked for, ends a little earlier, and is
counted by a clock that goes on while the machine sleeps. `is_sure` is asked at each beginning of a run, so a process
that was stopped in between, or whose connections broke, begins nothing that may be another's by now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from logging import getLogger
from threading import Thread
from typing import Final

from timerqueue import Clock, Pulse

from .._plan import ClockVerdict, Skew, skew_of
from ..stores import LEASE, Rightful, Sharing, StoreBusy, StoreError, StoreLocked, StoreTakenOver, View
from .belief import Belief
from .hearing import Hearing

logger = getLogger(__name__)

EVERY: Final = LEASE / 2.4
"""Seconds from one renewal to the next: a second one is due before we stop to rely on our lease."""

MARGIN: Final = LEASE / 6
"""Seconds before its end from which on we do not rely on our lease."""

AGAIN: Final = 0.1
"""Seconds after which a renewal that failed is tried again."""

BEHIND: Final = 0.005
"""Seconds after the end of another's lease at which it is looked at."""

MOVES: Final = 0.01
"""Seconds after which it is seen whether a loop that was busy has come round."""

LAST_TURN: Final = 1.0


class Lease:
    """Our lease. In its thread `seen` is called with what a turn has found and its number, `lost` when we have been
    buried, `failed` when the store did not answer, and `buried` when we, and not another agent, have buried somebody.
    """

    def __init__(
        self,
        sharing: Sharing,
        belief: Belief,
        *,
        seen: Callable[[View, int], object],
        lost: Callable[[StoreTakenOver], object],
        failed: Callable[[StoreError], object],
        buried: Callable[[], object],
        clock: Clock,
    ) -> None:
        self._sharing = sharing
        self._belief = belief
        self._now = belief.now
        self._seen = seen
        self._lost = lost
        self._failed = failed
        self._buried = buried
        self.turns = 0
        """How many turns have begun."""
        self.clock_found: tuple[Skew, bool] | None = None
        """By how much our clock was off when the store was asked last, and whether that is more than it may be: then
        the others are to have our shards. One value, which the loop may look at in any moment of a turn.
        """
        self._skew: Skew | None = None
        self._verdict = ClockVerdict()
        self._clock = clock
        self._trouble = ""
        self._dead: list[int] = []
        self.was_busy = False
        """In the last turn nobody could be buried, nor anything claimed, as others of us had the connection."""
        self._is_over = False
        self._resigns: str | None = None
        self._hint = belief.hint
        self._hearing = Hearing(sharing, self._hint)
        self._thread: Thread | None = None

    def is_held(self) -> bool:
        """Whether nobody else can have what is ours, as far as we know. Any thread."""
        return self._belief.is_held()

    def is_sure(self) -> bool:
        """Whether that was said since there was reason to doubt it: what is ours may begin. Any thread."""
        return self._belief.is_sure()

    def begin(self, wait: float) -> None:
        """Take turns from now on, for as long as the loop of this thread moves, the next one in `wait` seconds."""
        self._is_over, self._resigns = False, None
        self._hearing.begin()
        self._thread = Thread(target=self._serve, args=[Pulse(), wait], name="scheduler lease", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Let it run out."""
        self._is_over = True
        self._hint.set()
        self._hearing.end()

    def join(self) -> None:
        """Return when its threads have ended, or do not within a second or two."""
        if self._thread is not None:
            self._thread.join(LAST_TURN)
        self._hearing.join(LAST_TURN)

    def look(self) -> None:
        """Look around soon. Any thread."""
        self._hint.set()

    def resign(self, why: str) -> None:
        """Act as if the others had buried us, so that they do: renew the lease no more, and call `lost`. Any thread."""
        self._resigns = why
        self._hint.set()

    def turn(self) -> float:
        """Renew it, and do what is to be done at once. Seconds until the next turn. Raises StoreError."""
        if self._resigns is not None:
            raise StoreTakenOver(self._resigns)
        self.turns += 1
        heard = self._hearing.heard()
        may_wait = self._due() > EVERY / 2  # a burial may take longer than what is left of ours
        view = self._sharing.last if self.is_sure() and may_wait and not self._trouble else None
        has_looked = view is None or not any(peer.epoch in heard for peer in view.peers)
        if view is None or has_looked:
            view, skew = self._looked()
            if self._judge_clock(skew, view):
                view, _ = self._looked(must_renew=True)  # the others are to know at once
        heard = heard if view.may_heed else ()
        view = self._acted_on(view, heard)
        self._hearing.follow(view)
        self._seen(view, self.turns)
        ends = [peer.left + BEHIND for peer in view.peers if peer.epoch != view.me]
        return max(0.0, min([self._due(), *ends])) if has_looked else 0.0

    def _acted_on(self, view: View, heard: Collection[int]) -> View:
        """Bury who has died, or claim what is free and ours by right. While others of us have the connection for that,
        or somebody a lock, it is left to the next turn: nothing but the lease itself is worth waiting for.
        """
        dead = [peer for peer in view.peers if peer.left < 0 or peer.epoch in heard]
        epochs = [peer.epoch for peer in dead]
        if dead and epochs != self._dead:
            logger.warning("agents whose leases or sessions have ended: %s", ", ".join(peer.name for peer in dead))
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
            self._hearing.again(heard)
            if not isinstance(exc, StoreBusy | StoreLocked):
                raise
            logger.debug("nobody is buried, and nothing claimed, in this turn: %s", exc)
            self.was_busy = isinstance(exc, StoreBusy)  # else the store has answered
        return view

    def _looked(self, *, must_renew: bool = False) -> tuple[View, Skew]:
        """Look around, and renew the lease unless that was done just now: it costs the store a write."""
        doubts = self._belief.doubts
        is_due = self._due() <= EVERY / 2 or must_renew
        told = None if self._skew is None else self._skew.told
        try:
            view = self._sharing.renew(told, is_off=self._verdict.is_off, only_look=not is_due)
        except StoreError:
            self._belief.heard_since = None
            raise
        self._belief.dispel(doubts)
        if is_due:
            self._belief.until = view.asked + LEASE - MARGIN
        self._skew = skew_of(self._clock, view.at_us, view.answered - view.asked, self._now() - view.answered)
        return view, self._skew

    def _due(self) -> float:
        """Seconds until the lease is to be renewed."""
        return self._belief.until - (LEASE - MARGIN) + EVERY - self._now()

    def _judge_clock(self, skew: Skew, view: View) -> bool:
        """Say how our clock stands. Whether it is off, and was not, or the other way round."""
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
            has_left, self._is_over, self._belief.until = self._is_over, True, 0.0
            self._hearing.end()
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
        return AGAIN

    def _speak_of(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            logger.warning("the lease is not renewed: %s", trouble)
        elif self._trouble and not trouble:
            logger.info("the lease is renewed again")
        self._trouble = trouble


def _free(view: View) -> list[int]:
    """Shards that nobody has and that are ours by right."""
    owners = Rightful(view)
    return [shard for shard, owner in view.shards() if not owner and owners[shard] == view.me]
