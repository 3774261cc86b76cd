"""Statements for many rows at once.

At each step of a statement the driver releases the GIL, and may wait 5 ms for it. So one statement takes up to 1,024
rows. Ignored filler rows round their number up, so that few statements are prepared. Binding None takes sixteen times
as long as a number, so an empty column is a literal NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, compress
from sqlite3 import Connection
from typing import Any, Final

from ..._values import Outcome
from .._rows import RUNNING, Stood, StoredJob, StoredPause, StoredState, StoredTick
from .connection import fetch

MOST_ROWS: Final = 1_024
"""With 26 columns, below SQLite's limit of 32,766 parameters."""

Row = Sequence[Any]


def _upsert(table: str, fields: tuple[str, ...], key: str, where: str) -> str:
    names = [name for name in fields if name not in key.split(", ")]
    return (
        f"INSERT INTO {table} ({', '.join(fields)}) SELECT * FROM ({{rows}}) WHERE {where} "  # noqa: S608 - our own names
        f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names)}"
    )


_GIVEN: Final = "column1 IS NOT NULL"
_TICK: Final = _upsert("tick", StoredTick._fields, "due_us, job_id", _GIVEN)

PUT_JOB: Final = _upsert("job", StoredJob._fields, "id", _GIVEN)
CHANGE_JOB: Final = _upsert("job", StoredJob._fields, "id", "column1 IN (SELECT id FROM job)")
PUT_STATE: Final = _upsert("job_state", StoredState._fields, "job_id", "column1 IN (SELECT id FROM job)")
PUT_PAUSE: Final = _upsert("pause", StoredPause._fields, "scope", _GIVEN)
PAUSE_JOB: Final = (
    "INSERT INTO job (id, task, schedule, paused, paused_until_us) "
    "SELECT id, task, schedule, column2, column3 FROM ({rows}) JOIN job ON id = column1 WHERE true "
    "ON CONFLICT (id) DO UPDATE SET paused = excluded.paused, paused_until_us = excluded.paused_until_us"
)
"""An upsert, because UPDATE ... FROM needs SQLite 3.33."""
REMOVE_JOB: Final = "DELETE FROM job WHERE id IN ({rows})"
FINISH_JOB: Final = "DELETE FROM job WHERE (id, schedule) IN ({rows})"
REMOVE_PAUSE: Final = "DELETE FROM pause WHERE scope IN ({rows})"
END_TICK: Final = f"{_TICK} WHERE tick.fence = excluded.fence"
MISS_TICK: Final = f"{_TICK.partition(' DO UPDATE')[0]} DO NOTHING"
MARK_TICK: Final = (
    f"{_TICK} WHERE tick.fence = excluded.fence OR tick.attempt < excluded.attempt "
    f"AND tick.outcome NOT IN ('{RUNNING}', '{Outcome.MISSED.value}')"
)
JOBS: Final = f"SELECT {', '.join(StoredJob._fields)} FROM job WHERE id IN ({{rows}})"  # noqa: S608 - our own names
PAUSES: Final = f"SELECT {', '.join(StoredPause._fields)} FROM pause"  # noqa: S608 - our own names
PAUSES_OF: Final = f"{PAUSES} WHERE scope IN ({{rows}})"
FENCES: Final = "SELECT job_id, due_us, fence FROM tick WHERE (job_id, due_us) IN ({rows})"


_STANDING: Final = f"""
    SELECT {", ".join(StoredJob._fields)}, {", ".join(StoredState._fields)}
    FROM job LEFT JOIN job_state ON job_id = id WHERE id = ?
"""  # noqa: S608 - our own names


def stood(connection: Connection, job_id: str) -> Stood:
    width = len(StoredJob._fields)
    pauses = [StoredPause._make(row) for row in fetch(connection, PAUSES)]
    for row in fetch(connection, _STANDING, without_surrogates([job_id])):
        return Stood(StoredJob._make(row[:width]), state(row[width:]), pauses)
    return Stood(None, None, pauses)


def state(row: Row) -> StoredState | None:
    if row[0] is None:
        return None
    return StoredState._make((*row[:2], bool(row[2]), *row[3:-1], bool(row[-1])))


def put(connection: Connection, sql: str, rows: Sequence[Row]) -> int:
    """Put `rows` in place of {rows}. Return the number of changed rows."""
    return sum(connection.execute(*filled).rowcount for filled in _filled(sql, rows))


def ask(connection: Connection, sql: str, rows: Sequence[Row]) -> list[Any]:
    return list(chain.from_iterable(fetch(connection, *filled) for filled in _filled(sql, rows)))


def without_surrogates(row: Row) -> Row:
    return tuple(item.encode("utf-8", "backslashreplace").decode() if isinstance(item, str) else item for item in row)


def _filled(sql: str, rows: Sequence[Row]) -> Iterator[tuple[str, list[Any]]]:
    for first in range(0, len(rows), MOST_ROWS):
        some = rows[first : first + MOST_ROWS]
        places = _places(len(some))
        columns = list(zip(*some, strict=True))
        bound = [column.count(None) < len(some) for column in columns]
        values = list(chain.from_iterable(zip(*compress(columns, bound), strict=True)))
        if places > len(some):
            values += [None, *[0] * (sum(bound) - 1)] * (places - len(some))
        yield _statement(sql, places, tuple(bound)), values


def _places(rows: int) -> int:
    step = max(1, (1 << (rows - 1).bit_length()) // 8)
    return -(-rows // step) * step


@lru_cache(maxsize=64)
def _statement(sql: str, places: int, bound: tuple[bool, ...]) -> str:
    """`bound`: which columns have parameters. The key always has one."""
    row = f"({', '.join('?' if is_bound else 'NULL' for is_bound in bound)})"
    return sql.replace("{rows}", f"VALUES {', '.join([row] * places)}")
