"""Defects for the judge of fleet_chaos.py to find: each takes away a thing on which agents that share a store rely."""

import contextlib

from scheduler._lease import lease
from scheduler.stores import StoreTakenOver
from scheduler.stores._postgres import sharing, statements


def plant(name):
    """Build the defect of that name into this process; an empty name: none."""
    if name:
        DEFECTS[name]()


def fence():
    """A commit is carried out whether the row of its agent is there or not, and nobody looks for it or at the lease."""
    make = statements.Statements.__init__

    def without_fence(self, *args, **options):
        make(self, *args, **options)
        self.hold = self.of("SELECT FROM {schema}.meta WHERE %s IS NOT NULL AND instance = %s")
        self.who = self.of("SELECT instance, epoch, true OR %s IS NULL, NULL FROM {schema}.meta")

    renew = sharing.PostgresSharing.renew

    def renew_anyway(self, *args):
        with contextlib.suppress(StoreTakenOver):
            self.seen = renew(self, *args)
        return self.seen

    statements.Statements.__init__ = without_fence
    sharing.PostgresSharing.renew = renew_anyway
    lease.Lease.is_held = lambda _self: True


def lock():
    """The shards of a dead agent are given away without a wait for its commit that is under way."""
    make = sharing.SharingStatements.__init__

    def without_lock(self, statements, *args):
        make(self, statements, *args)
        self.bury = statements.of(
            "UPDATE {schema}.shard SET owner = NULL FROM {schema}.lease WHERE epoch = ANY (%s::bigint[])"
            " AND owner = epoch AND (until < clock_timestamp() OR epoch = ANY (%s::bigint[])) RETURNING epoch"
        )

    sharing.SharingStatements.__init__ = without_lock


DEFECTS = {"fence": fence, "lock": lock}
