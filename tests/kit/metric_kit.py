"""Probes, samples and outcomes for tests of metric storage."""

from attrs import evolve

from uptime_agent.postgres.contract import Column, OutcomeKind, Probe, ProbeOutcome, Sample, Scope, Type

T0 = 1_767_225_600.0
"""Thursday 2026-01-01 in UTC."""
DAY = 86_400.0


def make_probe(name="wal", *columns, on_change=False):
    """Make a probe of these columns, or of a name and a count."""
    columns = columns or (Column("name", Type.TEXT, is_key=True), Column("count", Type.BIGINT, is_counter=True))
    return Probe(name=name, purpose="a test", scope=Scope.SERVER, every=60.0, columns=columns, on_change=on_change)


WAL = make_probe()
SETTINGS = make_probe("settings", Column("name", Type.TEXT), Column("value", Type.TEXT), on_change=True)
EVERY_TYPE = make_probe("types", *(Column(each.name.lower(), each) for each in Type))


def sample(at=0.0, *rows, probe=WAL, target="db1", database=None, left_out=0):
    """Make a sample so many seconds after T0."""
    return Sample(probe, target, database, T0 + at, rows, left_out)


def outcome(due=0.0, kind=OutcomeKind.STORED, *, probe="wal", target="db1", database=None, **others):
    """Make a record so many seconds after T0."""
    return ProbeOutcome(probe=probe, target=target, database=database, due=T0 + due, kind=kind, **others)


def with_column(probe, *columns):
    """Return the probe as a newer release has it."""
    return evolve(probe, columns=(*probe.columns, *columns))


def times(store, **which):
    """Return the instants of what is stored, in seconds after T0, first one first."""
    return [round(each.at - T0, 6) for each in reversed(store.samples(limit=1_000_000, **which))]
