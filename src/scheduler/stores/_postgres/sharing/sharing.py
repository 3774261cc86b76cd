"""How nodes share a store in PostgreSQL.

Leases have their own table and connection: a long commit locks its node's row, and must not delay the renewal. One
statement renews the lease and returns the other nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from itertools import chain, islice
from threading import Event, Thread
from typing import Any, Final, Protocol
from uuid import UUID

from timerqueue import boottime

from ..._rows import MOST_REQUESTS, Answer, Changes, StoredRequest, StoredTick
from ..._shards import heirs
from ..._sharing import LEASE, LabelledShard, Peer, Rows, TakenShards, View
from ..._store import StoreError, StoreTakenOver, StoreUnusable
from ..beside import LentConnection
from ..changes import ChangeLog
from ..connection import ONE_SNAPSHOT, PID, StoreConnection, one_row, sql, translated
from ..spare import Spare
from ..table import Row, loaded, number_array, text_array
from .ends import Ends, Look
from .session import LeaseSession
from .statements import ROUND, Presence, SharingStatements

HINT: Final = "fleet"
"""The payload of NOTIFY for all nodes. `fleet 7` is for the node with epoch 7, though older versions hear that too."""

LATEST: Final = 2**63 - 1

FIRST: Final = datetime.min.replace(tzinfo=UTC), 0

AT_A_TIME: Final = 1_000

STUCK: Final = 0.2
"""Seconds that a burial, the removal of a dead node, waits for that node's last commit.

If the dead node's session then waits for its client, that process was stopped or cut off, and the session is ended. A
busy session ends by itself. The busy session may be another burial: two burials that end each other would bury no node.
"""


class SharingPlace(Protocol):
    @property
    def where(self) -> str: ...

    @property
    def epoch(self) -> int: ...

    @property
    def incarnation(self) -> UUID | None: ...

    @property
    def epoch_now(self) -> int:
        """0: not open."""

    def connect(self, *, only_reads: bool = False) -> StoreConnection:
        """Open a connection. `only_reads`: even if our node was buried."""

    def transaction(self) -> AbstractContextManager[StoreConnection]:
        """Open a transaction in order with our commits."""

    @property
    def beside(self) -> LentConnection: ...

    @property
    def spare(self) -> Spare: ...

    @property
    def connections(self) -> int: ...

    @property
    def log(self) -> ChangeLog: ...


class PostgresSharing:
    def __init__(
        self,
        place: SharingPlace,
        statements: SharingStatements,
        channel: str,
        max_skew: float | None,
        now: Callable[[], float] = boottime,
    ) -> None:
        self._place = place
        self._statements = statements
        self._channel = channel
        self._session = LeaseSession(place.connect, Presence(statements), now, place.spare)
        self._can_hear = True
        self._now = now
        self._ends = Ends()
        self._asked_after = FIRST
        self.begun: Collection[int] = ()
        self.last: View | None = None
        self.max_skew = max_skew

    def renew(self, skew: float | None = None, *, is_off: bool = False, only_look: bool = False) -> View:
        me, seen, session = self._place.epoch, self._place.log.seen, self._session
        clock = {"skew": skew, "is_off": is_off, "only_look": only_look}
        row = self._asked_for_lease({"lease": LEASE, "me": me, "seen": seen, "agent": str(me)} | clock)
        is_there, at_us, owners, agents, labelled, is_news, snapshot = row
        if not is_there:
            raise StoreTakenOver(f"{self._place.where}: its lease has ended, and another node has buried it")
        look = Look(asked=session.asked, answered=session.answered, server=at_us / 1e6)
        left = self._ends.look(look, ((row[0], row[-1], row[2]) for row in agents))
        peers = tuple(
            Peer(
                epoch=epoch,
                name=name or "",
                left=LEASE if epoch == me else left[epoch],
                format=form,
                opened_us=us,
                is_heard=session.in_session if epoch == me else heard,
                labels=labels,
                skew=skew if epoch == me else ahead,
                is_off=is_off if epoch == me else off,
                is_unsettled=unsettled,
            )
            for epoch, name, _, form, us, heard, labels, ahead, off, unsettled, _ in agents
        )
        if not is_news:
            self._place.log.see(snapshot, seen)
        found = {number: LabelledShard(where, owner) for number, where, owner in labelled or ()}
        self.last = View(
            me=me,
            peers=peers,
            owners=tuple(owners),
            labelled=found,
            at_us=at_us,
            asked=look.asked,
            answered=look.answered,
            since=self._ends.since,
            is_news=is_news,
        )
        return self.last

    def _asked_for_lease(self, said: dict[str, Any]) -> Row:
        try:
            with translated(self._place.where):
                said |= {"incarnation": self._place.incarnation, "connections": self._place.connections}
                return self._session.ask(self._place.epoch, self._statements.renew, said)
        except StoreError:
            self._ends.lose_sight()
            raise

    def hear(self, epoch: int, is_over: Callable[[], bool]) -> bool:
        self._check_that_we_can_hear()
        with translated(self._place.where), self._place.spare.hear(self._prepare_to_hear, is_over) as connection:
            connection.execute(self._statements.wait(epoch))
            return bool(one_row(connection.execute(self._statements.is_free, [epoch]))[0])

    def _prepare_to_hear(self, connection: StoreConnection) -> None:
        connection.patience = sys.maxsize
        self._can_hear = connection.is_direct()
        self._check_that_we_can_hear()
        connection.execute(self._statements.round, [ROUND])

    def _check_that_we_can_hear(self) -> None:
        if not self._can_hear:
            raise StoreUnusable(f"{self._place.where}: a pooler gives sessions to whom it likes")

    def bury(self, epochs: Sequence[int], heard: Collection[int] = ()) -> list[int]:
        """See Sharing. Last commits lock their nodes' rows: wait for them, or break them off. A node that renewed
        stays.
        """
        ended = self._ends.ended(epochs, self._now())
        asked = [number_array(each) for each in (epochs, heard, ended, ended.values())]
        to = {} if self.last is None else heirs(self.last, epochs)
        with self._place.beside.brief_transaction() as connection:
            gone, given = self._buried(connection, asked, to)
        if self.last is not None:
            self.last = self.last.after(gone, given)
        return gone

    def _buried(
        self, connection: StoreConnection, asked: list[str], to: Mapping[int, int]
    ) -> tuple[list[int], dict[int, int]]:
        pid = one_row(connection.execute(PID))[0]
        is_over = Event()
        Thread(target=self._break_off, args=[pid, is_over], name="scheduler burial", daemon=True).start()
        try:
            with connection.pipeline():
                connection.execute(self._statements.wait_for_last, asked[:1])
                buried = connection.execute(self._statements.bury, asked)
                given = self._give(connection, to)
                self._tell_others(connection)
                connection.end()
            return [row[0] for row in buried], dict(given)
        finally:
            is_over.set()

    def _give(self, connection: StoreConnection, to: Mapping[int, int]) -> Iterator[Row]:
        return connection.execute(self._statements.of_shards.give, [number_array(to), number_array(to.values()), None])

    def _break_off(self, pid: int, is_over: Event) -> None:
        """End sessions that block the burial and wait for their client."""
        if is_over.wait(STUCK):
            return
        with suppress(StoreError), translated(self._place.where), self._place.spare.lend() as connection:
            while not is_over.is_set():  # it may be over once we are connected
                connection.silence = 0
                connection.execute(self._statements.break_off, [pid])
                is_over.wait(STUCK)

    def claim(self, shards: Sequence[int]) -> list[int]:
        said = [number_array(shards), number_array([self._place.epoch] * len(shards)), self._place.incarnation]
        (given,) = self._place.beside.ask_briefly((self._statements.of_shards.give, said))
        return sorted(row[0] for row in given)

    def settle(self, *, stays: bool) -> None:
        self._place.beside.ask((self._statements.settle, self._us() | {"is_unsettled": not stays}))

    def leave(self) -> None:
        with self._place.beside.transaction() as connection, connection.pipeline():
            connection.execute(self._statements.leave, [self._place.epoch, self._place.incarnation])
            if self.last is not None:
                self._give(connection, heirs(self.last, [self._place.epoch]))
            self._tell_others(connection)

    def is_for_us(self, said: str) -> bool:
        """Whether a payload of NOTIFY concerns us."""
        hint, _, epoch = said.partition(" ")
        return hint != HINT or epoch in {"", str(self._place.epoch_now)}

    def hand_on(self, shards: Sequence[int], to: int) -> None:
        said = self._us() | {"to": to, "shards": number_array(shards)}
        self._place.beside.ask((self._statements.of_shards.hand_on, said))

    def _us(self) -> dict[str, Any]:
        return {
            "me": self._place.epoch,
            "incarnation": self._place.incarnation,
            "channel": self._channel,
            "hint": HINT,
        }

    def take(self, shards: Sequence[int], most: int, until_us: int | None = None) -> TakenShards:
        until = LATEST if until_us is None else until_us
        numbers = number_array(shards)
        of_shards = self._statements.of_shards
        running, owed, owing, jobs = self._place.beside.ask(
            (of_shards.running, [numbers]),
            (of_shards.owed, [numbers]),
            (of_shards.owing_jobs, [numbers, most]),
            (of_shards.first_jobs, [numbers, until_us is None, until, most]),
            isolation=ONE_SNAPSHOT,
        )
        first = {row[0]: row for row in chain(owing, jobs)}
        return TakenShards(
            jobs=[loaded(row) for row in islice(first.values(), most)],
            running=[StoredTick(*row) for row in running],
            owed=[StoredTick(*row) for row in owed],
        )

    def load(self, shards: Sequence[int]) -> Rows:
        return self._load(self._statements.of_shards.ids, shards, are_theirs=True)

    def forget_empty(self) -> list[int]:
        """See Sharing. A lock keeps jobs from coming into an empty shard meanwhile."""
        asked: dict[str, Any] = {"me": self._place.epoch}
        with self._place.beside.transaction() as connection:
            if not (empty := [row[0] for row in connection.execute(self._statements.of_shards.empty, asked)]):
                return []
            connection.execute(self._statements.of_shards.keep_jobs)
            asked["shards"] = number_array(empty)
            return [row[0] for row in connection.execute(self._statements.of_shards.forget, asked)]

    def load_others(self, shards: Sequence[int]) -> Rows:
        return self._load(self._statements.of_shards.other_ids, shards, are_theirs=False)

    def _load(self, ids: sql.Composed, shards: Sequence[int], *, are_theirs: bool) -> Rows:
        """Read jobs in pages: a single transaction would occupy a pooler's session. Changes made meanwhile come through
        the change log.
        """
        numbers, beside, page = number_array(shards), self._place.beside, self._statements.of_shards.page
        (found,) = beside.ask((ids, [numbers]))
        order = [row[0] for row in found]
        for first in range(0, len(order), AT_A_TIME):
            asked = [text_array(order[first : first + AT_A_TIME]), numbers, are_theirs]
            (found,) = beside.ask((page, asked))
            if rows := found.fetchall():
                yield [loaded(row) for row in rows]

    def running(self, shards: Sequence[int]) -> list[StoredTick]:
        return self._ticks(self._statements.of_shards.running, shards)

    def owed(self, shards: Sequence[int]) -> list[StoredTick]:
        return self._ticks(self._statements.of_shards.owed, shards)

    def read_requests(self, connection: StoreConnection) -> tuple[StoredRequest, ...]:
        """Read the next page of requests, oldest first. After the last page comes the first page again."""
        asked = [*self._asked_after, number_array(self.begun), self._place.epoch, MOST_REQUESTS]
        rows = connection.execute(self._statements.asked, asked).fetchall()
        self._asked_after = rows[-1][:2] if len(rows) == MOST_REQUESTS else FIRST
        return tuple(StoredRequest(*request) for _, *request in rows)

    def reread(self, job_ids: Collection[str]) -> Changes:
        with self._place.transaction() as connection:
            return self._place.log.reread(connection, job_ids)

    def answers(self, numbers: Sequence[int]) -> list[Answer]:
        with self._place.transaction() as connection:
            return [_answer(row) for row in connection.execute(self._statements.answers, [number_array(numbers)])]

    def close(self) -> None:
        self._session.close()
        self._can_hear = True

    def _ticks(self, statement: sql.Composed, shards: Sequence[int]) -> list[StoredTick]:
        (found,) = self._place.beside.ask((statement, [number_array(shards)]))
        return [StoredTick(*row) for row in found]

    def _tell_others(self, connection: StoreConnection) -> None:
        connection.execute(self._statements.hint, [self._channel, HINT])


def _answer(row: Row) -> Answer:
    number, is_done, is_gone, due_us, reason, comes_again, *tick = row
    found = None if tick[0] is None else StoredTick(*tick)
    return Answer(number, is_done, is_gone, due_us, reason, found, bool(comes_again))
