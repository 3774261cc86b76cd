"""The contract of probes: which variant a server is asked, and when two samples are the same."""

import datetime as dt
from decimal import Decimal

import pytest

from uptime_agent.postgres.contract import Column, Probe, Sample, Scope, Type, Variant, pick

UTC = dt.UTC


def probe(*variants, **options):
    return Probe(
        name="wal",
        purpose="for tests",
        scope=Scope.SERVER,
        every=60.0,
        columns=(Column("a", Type.BIGINT),),
        variants=variants,
        **options,
    )


BY_SERVER = probe(Variant("old", before=17), Variant("split", since=17), Variant("nineteen", since=19, is_proven=False))
BY_EXTENSION = probe(
    Variant("ten", extension_since="1.10"), Variant("nine", extension_since="1.9"), extension="pg_stat_statements"
)


@pytest.mark.parametrize(
    ("num", "sql"),
    [
        (140_022, None),
        (150_018, "old"),
        (160_000, "old"),
        (170_011, "split"),
        (180_006, "split"),
        (190_001, "nineteen"),
    ],
)
def test_a_server_is_asked_the_newest_variant_that_fits_it(num, sql):
    """A variant begins with a major version, and may end before one."""
    chosen = pick(BY_SERVER, num)
    assert (chosen and chosen.sql) == sql


def test_a_version_that_our_tests_do_not_know_is_told_as_unproven():
    """On 19, and on a 20 that nobody has seen, the newest variant runs, whatever it says of itself."""
    assert [pick(probe(Variant("x")), num).is_proven for num in (150_000, 189_999, 190_000, 200_000)] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("version", "sql"), [("1.11", "ten"), ("1.10", "ten"), ("1.9", "nine"), ("1.8", None), (None, None)]
)
def test_the_extension_decides_by_its_own_version_as_numbers(version, sql):
    """After pg_upgrade it is still the old one: 1.10 is newer than 1.9, and none at all answers nothing."""
    chosen = pick(BY_EXTENSION, 180_006, version)
    assert (chosen and chosen.sql) == sql


def test_the_schema_of_an_extension_is_put_in_quoted():
    """The search path is pg_catalog alone, and a schema may be called anything."""
    asked = probe(Variant("select * from @extschema@.view"), extension="pg_stat_statements")
    assert pick(asked, 180_006, "1.12", 'odd"one').sql == 'select * from "odd""one".view'


def sample(*rows, at=0.0):
    return Sample(BY_SERVER, "db1", None, at, rows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1, "a"), (2, None)], [(2, None), (1, "a")]),
        ([(1, 2.5)], [(Decimal("1.00"), Decimal("2.50"))]),
        (
            [(dt.datetime(2026, 1, 1, 12, tzinfo=UTC),)],
            [(dt.datetime(2026, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1))),)],
        ),
    ],
)
def test_equal_rows_have_one_fingerprint(one, other):
    """The order of the rows, the type of a number in Python and the time zone make no difference, nor does the time."""
    assert sample(*one).fingerprint() == sample(*other, at=9.0).fingerprint()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([(1,)], [(2,)]),
        ([(1,)], [("1",)]),
        ([(None,)], [("None",)]),
        ([(True,)], [(1,)]),
        ([], [()]),
        ([(1,)], [(1,), (1,)]),
    ],
)
def test_rows_that_differ_have_another_fingerprint(one, other):
    """A text is no number and nothing is no text."""
    assert sample(*one).fingerprint() != sample(*other).fingerprint()
