"""The table of slots of TimescaleDB's scheduler beside ours: where it gives the ideal slot, so do we, and else only we.

The columns: what finished when on a grid from which origin, in which zone (empty: UTC) and in which zone its session
was; the slot that TimescaleDB chose, and the ideal one: the smallest origin + k * interval after the finish.
"""

import csv
from datetime import datetime
from pathlib import Path

import pytest

from schedule import Calendar, Every

with (Path(__file__).parent / "timescaledb_slots.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))

EACH_ROW = pytest.mark.parametrize(
    "row", ROWS, ids=[f"{n}-{row['group']}-{row['interval']}" for n, row in enumerate(ROWS)]
)


def slot(row):
    """Ask our schedule: hours are the same everywhere, longer intervals are the calendar's."""
    origin, finish = (datetime.fromisoformat(row[name]) for name in ("initial_start_utc", "finish_utc"))
    if "hour" in row["interval"]:
        return Every(row["interval"], anchor=origin).next(finish)
    return Calendar(row["interval"], origin=origin, tz=row["timezone"] or "UTC").next(finish)


@EACH_ROW
def test_our_slot_is_the_ideal_one(row):
    """Whatever TimescaleDB says."""
    assert slot(row) == datetime.fromisoformat(row["ideal_slot_utc"])


@EACH_ROW
def test_our_slot_is_theirs_where_theirs_is_ideal(row):
    """And only there: the table says which rows those are."""
    assert (slot(row) == datetime.fromisoformat(row["timescaledb_slot_utc"])) is (row["agreement"] == "same")


def test_the_table_is_whole():
    """All rows are there, and all that name a zone agree where a clock is set."""
    assert len(ROWS) == 61
    assert sum(row["agreement"] == "differs" for row in ROWS) == 20
    zoned = [row for row in ROWS if row["group"].startswith("dst") and row["timezone"]]
    assert len(zoned) == 32
    assert {row["agreement"] for row in zoned} == {"same"}
