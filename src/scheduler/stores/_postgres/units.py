"""Units of the fleet's limits in PostgreSQL: a lent unit is a row, a round one transaction.

A round first locks the node's row, so a burial waits and finds every unit taken. Then it locks the limits. Only its
holder writes a unit's row. When a lease goes, a trigger writes its end into the units.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple
from zlib import crc32

from .._sharing import LEASE
from .._store import StoreTakenOver, StoreUnavailable
from .._units import FRESH, Ask, Books, Decision, Lent, Loan, Wish, decide
from .connection import Asked, StoreConnection, psycopg, sql
from .sharing import SharingPlace
from .statements import Statements
from .table import Row, number_array, text_array

LOCKS: Final = 64
"""Locks of all limits: a thousand must not fill the server's lock table."""

HINT: Final = "units"
"""Sent when work waits for units, or units came back."""

Cursor = psycopg.Cursor[Row]
Rows = Iterable[Row]
Round = Sequence[tuple[str, Decision, Ask]]


class Size(NamedTuple):
    """`rest`: seconds, after work began with a unit."""

    units: int
    rest: float


Said = dict[str, dict[int, Size]]

TABLES: Final = """
-- The rounds of an agent by which it borrows units: the last one that was carried out.
CREATE TABLE {schema}.borrower (
    epoch bigint PRIMARY KEY REFERENCES {schema}.agent ON DELETE CASCADE,
    round bigint NOT NULL
) WITH (fillfactor = 50);

-- How many units a limit of the fleet, or each of a family, has, as each agent was told.
CREATE TABLE {schema}.fleet_limit (
    epoch bigint NOT NULL REFERENCES {schema}.agent ON DELETE CASCADE,
    "limit" text COLLATE "C" NOT NULL,
    units integer NOT NULL,
    PRIMARY KEY (epoch, "limit")
);

-- A unit that is lent. One without an end is its agent's for as long as that has its lease. No foreign key: the units
-- of an agent that is gone stay lent until the end of its lease.
CREATE TABLE {schema}.unit (
    "limit" text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    epoch bigint NOT NULL,
    until timestamptz,
    PRIMARY KEY ("limit", number)
);
CREATE INDEX unit_epoch ON {schema}.unit (epoch);

-- What waits at an agent for units, best first.
CREATE TABLE {schema}.wish (
    epoch bigint NOT NULL REFERENCES {schema}.agent ON DELETE CASCADE,
    "limit" text COLLATE "C" NOT NULL,
    dues bigint[] NOT NULL,
    units bigint[] NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (epoch, "limit")
) WITH (fillfactor = 50);
CREATE INDEX wish_limit ON {schema}.wish ("limit");

CREATE FUNCTION {schema}.end_loans() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE {schema}.unit SET until = OLD.until WHERE epoch = OLD.epoch AND until IS NULL;
    RETURN OLD;
END
$body$;
CREATE TRIGGER end_loans BEFORE DELETE ON {schema}.lease FOR EACH ROW EXECUTE FUNCTION {schema}.end_loans();
"""

RESTS: Final = """
ALTER TABLE {schema}.fleet_limit ADD COLUMN rest double precision NOT NULL DEFAULT 0;
ALTER TABLE {schema}.unit ADD COLUMN rest double precision NOT NULL DEFAULT 0;
CREATE OR REPLACE FUNCTION {schema}.end_loans() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE {schema}.unit SET until = OLD.until + rest * interval '1s' WHERE epoch = OLD.epoch AND until IS NULL;
    RETURN OLD;
END
$body$;
"""


class UnitStatements:
    def __init__(self, statements: Statements) -> None:
        of = statements.of
        self.hold = of("SELECT FROM {schema}.agent WHERE epoch = %s AND incarnation = %s FOR KEY SHARE")
        self.join = of("INSERT INTO {schema}.borrower (epoch, round) VALUES (%s, 0) ON CONFLICT DO NOTHING")
        self.forget_sizes = of("DELETE FROM {schema}.fleet_limit WHERE epoch = %s")
        self.put_sizes = of(
            'INSERT INTO {schema}.fleet_limit ("limit", epoch, units, rest)'
            " SELECT given.name, %s, given.units, given.rest"
            " FROM unnest(%s::text[], %s::bigint[], %s::double precision[]) AS given (name, units, rest)"
        )
        self.begin = of("UPDATE {schema}.borrower SET round = %s WHERE epoch = %s AND round < %s")
        self.lock = of(
            "SELECT pg_advisory_xact_lock(hashtext('timerqueue units'), hashtext(%s) # number)"
            " FROM unnest(%s::integer[]) AS number"
        )
        # A loan that ends later than a lease from now was written before the server's clock was set back.
        longest = of("clock_timestamp() + ({lease} + rest) * interval '1s'", lease=sql.Literal(LEASE))
        self.forget_ended = of(
            'WITH shortened AS (UPDATE {schema}.unit SET until = {longest} WHERE "limit" = ANY (%(names)s::text[])'
            ' AND until > {longest}) DELETE FROM {schema}.unit WHERE "limit" = ANY (%(names)s::text[])'
            " AND until < clock_timestamp()",
            longest=longest,
        )
        self.units = of('SELECT "limit", number, epoch FROM {schema}.unit WHERE "limit" = ANY (%s::text[])')
        self.sizes = of('SELECT "limit", epoch, units, rest FROM {schema}.fleet_limit WHERE "limit" = ANY (%s::text[])')
        self.wishes = of(
            'SELECT "limit", epoch, dues, units FROM {schema}.wish WHERE "limit" = ANY (%s::text[])'
            " AND epoch <> %s AND at > clock_timestamp() - %s * interval '1s'"
        )
        self.give = of(
            "DELETE FROM {schema}.unit USING unnest(%s::text[], %s::bigint[]) AS given (name, number)"
            ' WHERE unit."limit" = given.name AND unit.number = given.number AND unit.epoch = %s'
        )
        self.take = of(
            'INSERT INTO {schema}.unit ("limit", number, epoch, rest) SELECT given.name, given.number, %s, given.rest'
            " FROM unnest(%s::text[], %s::bigint[], %s::double precision[]) AS given (name, number, rest)"
        )
        self.put_wishes = of(
            'INSERT INTO {schema}.wish ("limit", epoch, dues, units, at)'
            " SELECT given.name, %s, given.dues::bigint[], given.units::bigint[], clock_timestamp()"
            " FROM unnest(%s::text[], %s::text[], %s::text[]) AS given (name, dues, units)"
            ' ON CONFLICT ("limit", epoch) DO UPDATE SET dues = excluded.dues, units = excluded.units, at = excluded.at'
        )
        self.forget_wishes = of('DELETE FROM {schema}.wish WHERE epoch = %s AND "limit" = ANY (%s::text[])')
        self.let_rest = of(
            "UPDATE {schema}.unit SET until = clock_timestamp() + rest * interval '1s'"
            " WHERE epoch = %s AND until IS NULL AND rest > 0"
        )
        self.give_all = of("DELETE FROM {schema}.unit WHERE epoch = %s AND until IS NULL")
        self.forget_all_wishes = of("DELETE FROM {schema}.wish WHERE epoch = %s")
        self.hint = of("SELECT pg_notify(%s, %s)")
        self.loans = of(
            'SELECT "limit", epoch, agent.name, coalesce(lent.units, 0), coalesce(wished.units, 0),'
            " extract(epoch FROM lent.until - clock_timestamp()) FROM"
            ' (SELECT "limit", epoch, count(*) AS units, min(until) AS until FROM {schema}.unit'
            " WHERE until IS NULL OR until > clock_timestamp() GROUP BY 1, 2) AS lent FULL JOIN"
            ' (SELECT "limit", epoch, (SELECT sum(each) FROM unnest(units) AS each)::bigint AS units'
            " FROM {schema}.wish WHERE at > clock_timestamp() - %s * interval '1s') AS wished"
            ' USING ("limit", epoch) LEFT JOIN {schema}.agent USING (epoch) ORDER BY "limit", epoch'
        )
        self.all_sizes = of('SELECT "limit", epoch, units, rest FROM {schema}.fleet_limit')


def loans_of(connection: StoreConnection, statements: UnitStatements) -> list[Loan]:
    rows = connection.execute(statements.loans, [FRESH]).fetchall()
    said = _said(connection.execute(statements.all_sizes))
    return [
        Loan(limit=name, epoch=epoch, agent=agent, units=units, size=size, waiting=waiting, left=left)
        for name, epoch, agent, units, waiting, left in rows
        for size in [min((each.units for each in _sizes(said, name)), default=None)]
    ]


class PostgresLending:
    def __init__(self, place: SharingPlace, statements: UnitStatements, channel: str) -> None:
        self._place = place
        self._statements = statements
        self._channel = channel
        self._numbers = count(1)
        self._sizes: Mapping[str, Size] = {}
        self._declared: tuple[int, Mapping[str, Size], StoreConnection] | None = None
        """Another connection may lead to a standby that missed it."""
        self._hint: Callable[[], None] | None = None

    @property
    def epoch(self) -> int:
        return self._place.epoch_now

    def declare(self, sizes: Mapping[str, int], windows: Mapping[str, float]) -> None:
        self._sizes = {name: Size(units, windows.get(name, 0.0)) for name, units in sizes.items()}

    def hear(self, hint: Callable[[], None]) -> None:
        self._hint = hint

    def hint(self) -> None:
        """Any thread."""
        if self._hint is not None:
            self._hint()

    def round(self, asked: Mapping[str, Ask]) -> Mapping[str, Lent]:
        me = self._place.epoch
        number, sizes = next(self._numbers), self._sizes  # the loop may replace them meanwhile
        with self._place.beside.lend() as connection:
            if self._declared != (me, sizes, connection):
                with connection.transaction_as(""):
                    self._declare(connection, me, sizes)
            with connection.transaction_as("", first=self._begin(me, number, asked)) as begun:
                books = self._begun(number, asked, begun)
                decided = [(name, decide(me, ask, books[name]), ask) for name, ask in asked.items()]
                self._write(connection, me, decided)
            self._declared = me, sizes, connection
        return {name: decision.lent for name, decision, _ in decided}

    def give_back(self) -> None:
        me, number = self._place.epoch, next(self._numbers)
        with self._place.beside.transaction() as connection:
            if not self._hold(connection, me).rowcount:
                return
            with connection.pipeline():
                connection.execute(self._statements.begin, [number, me, number])
                connection.execute(self._statements.let_rest, [me])
                connection.execute(self._statements.give_all, [me])
                connection.execute(self._statements.forget_all_wishes, [me])
                connection.execute(self._statements.hint, [self._channel, HINT])

    def loans(self) -> list[Loan]:
        with self._place.beside.transaction(is_reader=True) as connection:
            return loans_of(connection, self._statements)

    def _declare(self, connection: StoreConnection, me: int, told: Mapping[str, Size]) -> None:
        self._check(self._hold(connection, me))
        with connection.pipeline():
            connection.execute(self._statements.join, [me])
            connection.execute(self._statements.forget_sizes, [me])
            units, rests = zip(*told.values(), strict=True) if told else ((), ())
            sizes = [text_array(told), number_array(units), number_array(rests)]
            connection.execute(self._statements.put_sizes, [me, *sizes])

    def _begin(self, me: int, number: int, asked: Mapping[str, Ask]) -> list[Asked]:
        statements, names = self._statements, text_array(asked)
        locks = number_array(sorted({crc32(name.encode()) % LOCKS for name in asked}))
        return [
            (statements.hold, [me, self._place.incarnation]),
            (statements.begin, [number, me, number]),
            (statements.lock, [self._channel, locks]),
            (statements.forget_ended, {"names": names}),
            (statements.units, [names]),
            (statements.sizes, [text_array({*asked, *map(_family, asked)})]),
            (statements.wishes, [names, me, FRESH]),
        ]

    def _begun(self, number: int, asked: Mapping[str, Ask], answers: Sequence[Cursor]) -> dict[str, Books]:
        """Raises StoreTakenOver if we were buried."""
        held, begun, _, _, units, sizes, wishes = answers
        self._check(held)
        if not begun.rowcount:
            msg = f"{self._place.where}: round {number} of units has come after a later one, or it knows of none"
            raise StoreUnavailable(msg)
        return _books(asked, units, sizes, wishes)

    def _hold(self, connection: StoreConnection, me: int) -> Cursor:
        return connection.execute(self._statements.hold, [me, self._place.incarnation])

    def _check(self, held: Cursor) -> None:
        if not held.rowcount:
            msg = f"{self._place.where}: its lease has ended, and so have its loans of units"
            raise StoreTakenOver(msg)

    def _write(self, connection: StoreConnection, me: int, decided: Round) -> None:
        gives = [(name, number) for name, decision, _ in decided for number in decision.gives]
        takes = [(name, number) for name, decision, _ in decided for number in decision.takes]
        rests = [decision.lent.window for _, decision, _ in decided for _ in decision.takes]
        wishing = {name: ask.wishes for name, _, ask in decided if ask.wishes}
        silent = [name for name, _, ask in decided if not ask.wishes]
        with connection.pipeline():
            if gives:
                connection.execute(self._statements.give, [*_columns(gives), me])
            if takes:
                connection.execute(self._statements.take, [me, *_columns(takes), number_array(rests)])
            if wishing:
                dues = text_array(number_array([wish.due_us for wish in wishes]) for wishes in wishing.values())
                units = text_array(number_array([wish.units for wish in wishes]) for wishes in wishing.values())
                connection.execute(self._statements.put_wishes, [me, text_array(wishing), dues, units])
            if silent:
                connection.execute(self._statements.forget_wishes, [me, text_array(silent)])
            if any(decision.is_to_be_told for _, decision, _ in decided):
                connection.execute(self._statements.hint, [self._channel, HINT])
            connection.end()


def _books(asked: Mapping[str, Ask], unit_rows: Rows, size_rows: Rows, wish_rows: Rows) -> dict[str, Books]:
    units: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for name, number, epoch in unit_rows:
        units[name][number] = epoch
    wishes: defaultdict[str, dict[int, Sequence[Wish]]] = defaultdict(dict)
    for name, epoch, dues, wanted in wish_rows:
        wishes[name][epoch] = [Wish(*each) for each in zip(dues, wanted, strict=True)]
    said = _said(size_rows)
    books = {}
    for name, ask in asked.items():
        sizes = [Size(ask.size, ask.window), *_sizes(said, name)]
        least, longest = min(each.units for each in sizes), max(each.rest for each in sizes)
        books[name] = Books(least, units[name], wishes[name], longest)
    return books


def _said(rows: Rows) -> Said:
    said: Said = {}
    for name, epoch, units, rest in rows:
        said.setdefault(name, {})[epoch] = Size(units, rest)
    return said


def _sizes(said: Said, name: str) -> Iterable[Size]:
    """Return each node's size of this limit, or else of its family."""
    return (said.get(_family(name), {}) | said.get(name, {})).values()


def _family(name: str) -> str:
    return f"{name.partition(':')[0]}:*"


def _columns(pairs: Sequence[tuple[str, int]]) -> list[str]:
    return [text_array(name for name, _ in pairs), number_array([number for _, number in pairs])]
