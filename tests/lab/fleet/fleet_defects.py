"""Defects for the judge of fleet_chaos.py to find: each takes away a thing on which agents that share a store rely."""

import contextlib

from attrs import evolve

from fleet_outage_defects import OUTAGES
from scheduler._fleet.lease import lease
from scheduler._fleet.lending import allotment, units as borrowing
from scheduler.stores import StoreTakenOver
from scheduler.stores._postgres import sharing, statements, units
from scheduler.stores._units import Books, decide
from timerqueue import SystemClock, boottime


def plant(names):
    """Build the defects of these names, with commas between them, into this process."""
    for name in filter(None, names.split(",")):
        (DEFECTS | OUTAGES)[name]()


def fence():
    """A commit is carried out whether the row of its agent is there or not, and nobody looks for it or at the lease."""
    make = statements.Statements.__init__

    def without_fence(self, *args, **options):
        make(self, *args, **options)
        anyone = "SELECT FROM {schema}.meta WHERE %s IS NOT NULL AND %s IS NOT NULL AND instance = %s"
        self.hold = self.hold_by_keys = self.of(anyone)
        self.hold_session = self.of(anyone + " AND %s IS NOT NULL")
        self.who = self.of(
            "SELECT instance, epoch, true OR %s IS NULL OR %s IS NULL, NULL, pg_backend_pid() FROM {schema}.meta"
        )

    renew = sharing.PostgresSharing.renew

    def renew_anyway(self, *args, **options):
        with contextlib.suppress(StoreTakenOver):
            self.seen = renew(self, *args, **options)
        now, at_us = boottime(), round(SystemClock().wall() * 1e6)
        return evolve(self.seen, at_us=at_us, asked=now, answered=now)  # an old one would be a clock that is off

    statements.Statements.__init__ = without_fence
    sharing.PostgresSharing.renew = renew_anyway
    lease.Lease.is_held = lease.Lease.is_sure = lambda _self: True


def lock():
    """The shards of a dead agent are given away without a wait for its commit that is under way."""
    make = sharing.SharingStatements.__init__

    def without_lock(self, statements, *args):
        make(self, statements, *args)
        self.wait_for_last = statements.of("SELECT %s::bigint[]")
        self.bury = statements.of(
            "UPDATE {schema}.shard SET owner = NULL FROM {schema}.lease WHERE epoch = ANY (%s::bigint[])"
            " AND owner = epoch AND (until < clock_timestamp() OR epoch = ANY (%s::bigint[])"
            " OR epoch = ANY (%s::bigint[]) AND %s::bigint[] IS NOT NULL) RETURNING epoch"
        )

    sharing.SharingStatements.__init__ = without_lock


def counter():
    """A limit of the fleet counts what is in use, and nothing says whose that is.

    Who buries an agent counts back what it had. If that one is not dead, it goes on with it, and counts it back too.
    """
    make = units.UnitStatements.__init__

    def with_counters(self, statements):
        make(self, statements)
        self.count_back_at_burial = statements.of(
            "CREATE OR REPLACE FUNCTION {schema}.end_loans() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " DELETE FROM {schema}.unit WHERE epoch = OLD.epoch; RETURN OLD; END $$"
        )
        self.count = statements.of('SELECT count(*) FROM {schema}.unit WHERE "limit" = %s')
        self.count_up = statements.of(
            'INSERT INTO {schema}.unit ("limit", number, epoch) SELECT %s, free, %s FROM generate_series(1, 99) AS free'
            ' WHERE free NOT IN (SELECT number FROM {schema}.unit WHERE "limit" = %s) LIMIT %s'
        )
        self.count_down = statements.of(
            'DELETE FROM {schema}.unit WHERE "limit" = %s AND number IN'
            ' (SELECT number FROM {schema}.unit WHERE "limit" = %s LIMIT %s)'
        )

    def of_counters(self, asked):
        say, lent = self._statements, {}
        ours = self.__dict__.setdefault("ours", {})
        with self._place.beside.transaction() as connection:
            connection.execute(say.lock, [self._channel, [0]])
            connection.execute(say.count_back_at_burial)
            for name, ask in asked.items():
                had, ((in_use,),) = ours.get(name, 0), connection.execute(say.count, [name]).fetchall()
                books = Books(ask.size, {unit: unit <= had for unit in range(1, max(had, in_use) + 1)}, {})
                decided = decide(True, ask, books)
                connection.execute(say.count_up, [name, self.epoch, name, len(decided.takes)])
                connection.execute(say.count_down, [name, name, len(decided.gives)])
                lent[name] = decided.lent
        ours |= {name: each.held for name, each in lent.items()}
        return lent

    units.UnitStatements.__init__ = with_counters
    units.PostgresLending.round = of_counters
    allotment.Allotment.forget = lambda _self: None
    borrowing.Units._cut_off = lambda _self: None


DEFECTS = {"fence": fence, "counter": counter, "lock": lock}
