"""Takes ticks, in its own thread, and settles them.

A server lets only the connection that took a tick end it, and a connection that waits hears nothing else. So one thread
settles, then waits for a tick, a second at most while it holds any. It touches held ticks in time. If the connection
ends, all its ticks go to others. Runs here go on, and their records say so.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum
from logging import getLogger
from threading import Condition, Thread
from typing import Final, assert_never

from attrs import define

from timerqueue import Clock

from ..._values import Backoff
from .._queue import SECOND_US, Deliver, Delivery, Kind, Place, QueueUnavailable, Tick, delay_of
from .address import Address
from .body import Later, decode
from .commander import PRIORITIES
from .connection import LONGEST_WAIT, BeanstalkConnection
from .strangers import Strangers
from .tally import ReservationTally
from .tubes import tube_of
from .wire import Reply

logger = getLogger(__name__)

LONGEST_DELAY: Final = 2**32 - 1
"""Whole seconds: 136 years. A later tick gets there by hops."""

AT_ONCE: Final = 100

MORE: Final = 4
"""The next request's growth while every tick asked for comes."""

BACKOFF: Final = Backoff(0.05, 5.0)

NEWER_VERSION_DELAY_S: Final = 10
"""Seconds until a later version's tick comes out again, for another node."""


class Verb(Enum):
    DONE = "done"
    RELEASE = "release"
    BURY = "bury"


@define(eq=False)
class ReservedTick(Delivery):
    """`touch_at`: monotonic seconds."""

    reserver: Reserver
    tick: Tick
    place: Place
    touch_at: float = 0.0

    def done(self) -> None:
        self.reserver.settle(self, Verb.DONE)

    def release(self, seconds: int = 0) -> None:
        self.reserver.settle(self, Verb.RELEASE, seconds)

    def bury(self) -> None:
        self.reserver.settle(self, Verb.BURY)


class Reserver:
    """Takes due ticks while it holds fewer than `window` and `most`."""

    def __init__(
        self,
        address: Address,
        tube: str,
        *,
        ttr: int,
        window: int,
        most: int | None,
        clock: Clock,
        tally: ReservationTally,
        deliver: Deliver,
    ) -> None:
        self._address = address
        self._tube = tube
        self._tubes = [tube_of(tube, kind) for kind in Kind]
        self._is_listening = False
        self._watched = 0
        self._ttr = ttr
        self._clock = clock
        self._tally = tally
        self._strangers = Strangers(address, clock)
        self._deliver = deliver
        self._window = window
        self._changed = Condition()
        self._most = window if most is None else min(most, window)
        self._asked: list[tuple[ReservedTick, Verb, int]] = []
        self._held: dict[int, ReservedTick] = {}
        self._look_again_at = 0.0
        self._connection: BeanstalkConnection | None = None
        self._closing = False
        self._thread = Thread(target=self._run, name="scheduler queue", daemon=True)

    def listen(self, wheres: Collection[str]) -> None:
        """Take ticks for these labels, too, within a second. Any thread."""
        tubes = [tube_of(self._tube, Kind.RUN, where) for where in sorted(wheres)]
        self._tubes += [each for each in tubes if each not in self._tubes]
        self._is_listening = True

    def bound(self, most: int | None) -> None:
        """None: up to `window`. Any thread."""
        with self._changed:
            self._most = self._window if most is None else min(most, self._window)
            self._changed.notify()

    def start(self) -> None:
        self._thread.start()

    def settle(self, taken: ReservedTick, verb: Verb, seconds: int = 0) -> None:
        """Any thread. Does not wait."""
        with self._changed:
            self._asked.append((taken, verb, seconds))
            self._changed.notify()

    def close(self, wait: float) -> None:
        """Settle, then end. Waits twice `wait` seconds at most."""
        with self._changed:
            self._closing = True
            is_idle = not self._asked
            self._changed.notify()
        connection = self._connection
        if is_idle and connection is not None:
            connection.break_off()
        self._thread.join(wait)
        if self._thread.is_alive() and connection is not None:
            connection.break_off()
            self._thread.join(wait)

    def _run(self) -> None:
        failures = 0
        while not self._closing:
            try:
                tubes = list(self._tubes)
                connection = self._connection = BeanstalkConnection(self._address, tubes)
                self._watched = len(tubes)
            except QueueUnavailable as error:
                failures += 1
                if failures == 1:
                    logger.warning("%s; nothing comes out of it until it is back", error)
                self._wait(BACKOFF.after(failures))
                continue
            if failures:
                logger.info("beanstalkd at %s is back", self._address)
                self._tally.count("reconnected")
            failures = self._serve(connection)

    def _serve(self, connection: BeanstalkConnection) -> int:
        try:
            while not self._closing:
                self._send_asked(connection)
                self._touch(connection)
                self._watch(connection)
                self._strangers.tell()
                if len(self._held) < self._most:
                    self._take(connection)
                else:
                    self._wait_for_room()
            self._send_asked(connection)
        except QueueUnavailable as error:
            if not self._closing:
                logger.warning("%s; %d ticks that were taken go to others", error, len(self._held))
                return 1
        except Exception:
            logger.exception("what came out of %s could not be given on; it goes back there", self._address)
            return 1
        finally:
            self._held.clear()
            connection.close()
        return 0

    def _wait(self, seconds: float) -> None:
        with self._changed:
            if not self._asked and not self._closing:
                self._changed.wait(seconds)

    def _wait_for_room(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._asked or self._closing or len(self._held) < self._most, 1.0)

    def _watch(self, connection: BeanstalkConnection) -> None:
        tubes = self._tubes[self._watched :]
        connection.exchange([b"watch %s\r\n" % tube.encode() for tube in tubes])
        self._watched += len(tubes)

    def _take(self, connection: BeanstalkConnection) -> None:
        found: list[Delivery] = []
        wait, many = 1 if self._held or self._is_listening else LONGEST_WAIT, 1
        while many > 0:
            answers = connection.exchange([b"reserve-with-timeout %d\r\n" % wait] * many)
            for answer in answers:
                taken = self._reserved(connection, answer)
                if taken is not None:
                    found.append(taken)
            if any(answer.word != b"RESERVED" for answer in answers):
                break
            wait, many = 0, min(MORE * many, AT_ONCE - len(found), self._most - len(self._held))
        if found:
            self._tally.count("delivered", len(found))
            self._deliver(found)

    def _reserved(self, connection: BeanstalkConnection, answer: Reply) -> ReservedTick | None:
        if answer.word == b"DEADLINE_SOON":
            self._touch(connection, all_of_them=True)
        if answer.word != b"RESERVED":
            return None
        number, tick = answer.number, decode(answer.body)
        if not isinstance(tick, Tick):
            self._put_by(connection, number, tick)
            return None
        if delay := delay_of(tick.due_us, int(self._clock.wall() * SECOND_US), LONGEST_DELAY):
            self._send_back(connection, number, tick, delay)
            return None
        taken = ReservedTick(self, tick, Place(connection.instance, number))
        taken.touch_at = self._clock.monotonic() + self._ttr / 4
        self._held[number] = taken
        return taken

    def _put_by(self, connection: BeanstalkConnection, number: int, tick: Later | None) -> None:
        """Only its owner may run or delete a foreign body."""
        self._tally.count("strange")
        if tick is None:
            connection.exchange([b"bury %d 0\r\n" % number])
            self._strangers.meet(number)
        else:
            connection.exchange([b"release %d %d %d\r\n" % (number, PRIORITIES[Kind.RUN], NEWER_VERSION_DELAY_S)])

    def _send_back(self, connection: BeanstalkConnection, number: int, tick: Tick, delay: int) -> None:
        """The server's clock was set, or it can count no further."""
        hopped = connection.ask(lambda client: client.stats_job(number))["delay"] == LONGEST_DELAY
        self._tally.count("hops" if hopped else "premature")
        connection.exchange([b"release %d %d %d\r\n" % (number, PRIORITIES[tick.kind], delay)])

    def _touch(self, connection: BeanstalkConnection, *, all_of_them: bool = False) -> None:
        """Touch held ticks after each quarter of their time."""
        now = self._clock.monotonic()
        if not all_of_them and now < self._look_again_at:
            return
        self._look_again_at = now + 1  # not at each tick that comes: thousands may be held
        late = [each for each in self._held.values() if all_of_them or each.touch_at <= now]
        for taken in late:
            taken.touch_at = now + self._ttr / 4
        answers = connection.exchange([b"touch %d\r\n" % taken.place.number for taken in late])
        self._lose([taken for taken, answer in zip(late, answers, strict=True) if answer.word == b"NOT_FOUND"])

    def _send_asked(self, connection: BeanstalkConnection) -> None:
        with self._changed:
            asked, self._asked = self._asked, []
        ours = []
        for taken, verb, seconds in asked:
            if self._held.get(taken.place.number) is taken:  # else the server has given it to others, or to us again
                del self._held[taken.place.number]
                ours.append((taken, verb, seconds))
        answers = connection.exchange([_command(taken, verb, seconds) for taken, verb, seconds in ours])
        self._lose([taken for (taken, *_), answer in zip(ours, answers, strict=True) if answer.word == b"NOT_FOUND"])
        buried = sum(
            verb is Verb.RELEASE and answer.word == b"BURIED"
            for (_, verb, _), answer in zip(ours, answers, strict=True)
        )
        if buried:
            logger.warning("beanstalkd at %s: no room to release %d ticks; they are buried", self._address, buried)
        self._tally.count("done", sum(answer.word == b"DELETED" for answer in answers))

    def _lose(self, lost: Sequence[ReservedTick]) -> None:
        """Another node may have these ticks: we were stopped or too slow."""
        if not lost:
            return
        for taken in lost:
            self._held.pop(taken.place.number, None)
        self._tally.count("expired", len(lost))
        text = "beanstalkd at %s: the time to run of %d ticks was over before they were settled; the first is %s"
        logger.info(text, self._address, len(lost), lost[0].tick)


def _command(taken: ReservedTick, verb: Verb, seconds: int) -> bytes:
    number, priority = taken.place.number, PRIORITIES[taken.tick.kind]
    match verb:
        case Verb.DONE:
            return b"delete %d\r\n" % number
        case Verb.RELEASE:
            return b"release %d %d %d\r\n" % (number, priority, min(seconds, LONGEST_DELAY))
        case Verb.BURY:
            return b"bury %d 0\r\n" % number
        case _:
            assert_never(verb)
