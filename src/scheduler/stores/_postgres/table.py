"""Rows as columns: PostgreSQL gets one array per column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, LiteralString, NamedTuple, get_args, get_type_hints

from attrs import Factory, evolve, frozen

from .._rows import (
    Execution,
    Placed,
    Planned,
    Stood,
    StoredChange,
    StoredJob,
    StoredPause,
    StoredRequest,
    StoredState,
    StoredTick,
)
from .connection import sql

Row = tuple[Any, ...]


@frozen
class StoreTable:
    """A table with the row's fields as columns. `kept`: columns that are not replaced."""

    name: LiteralString
    key: tuple[str, ...]
    types: dict[str, LiteralString]
    texts: frozenset[int] = Factory(
        lambda self: frozenset(n for n, kind in enumerate(self.types.values()) if kind == "text"), takes_self=True
    )
    kept: frozenset[str] = frozenset()

    @property
    def columns(self) -> sql.Composed:
        return _listed(*self.types)

    @property
    def qualified(self) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(self.name, column) for column in self.types)

    @property
    def rows(self) -> sql.Composed:
        return _given(*self.types.items())

    @property
    def replacement(self) -> sql.Composed:
        """Text after ON CONFLICT."""
        others = [name for name in self.types if name not in self.key and name not in self.kept]
        news = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
        return sql.SQL("({}) DO UPDATE SET {}").format(_listed(*self.key), news)

    def parameters(self, rows: Iterable[Row]) -> list[str]:
        columns = zip(*rows, strict=True)
        return [
            text_array(column) if number in self.texts else number_array(column)
            for number, column in enumerate(columns)
        ]


# Arrays are written here, because the driver takes five times as long: it inspects each value.


def number_array(column: Iterable[float | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in column]) + "}"


def text_array(column: Iterable[str | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else _quoted(value) for value in column]) + "}"


def _quoted(text: str) -> str:
    return '"' + storable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def storable(text: str) -> str:
    """Replace what PostgreSQL cannot hold, NUL and lone surrogates, by U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# Cached: composing these took half of the time to make a store, which tests do thousands of times.


@cache
def _listed(*names: str) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


@cache
def _given(*types: tuple[str, LiteralString]) -> sql.Composed:
    arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(kind)) for _, kind in types)
    return sql.SQL("unnest({}) AS given ({})").format(arrays, _listed(*(name for name, _ in types)))


KINDS: Final[dict[type, LiteralString]] = {int: "bigint", str: "text", bool: "boolean", float: "double precision"}


def _table(name: LiteralString, row: type[NamedTuple], *key: str) -> StoreTable:
    hints = get_type_hints(row)
    kinds = {column: get_args(hints[column]) or (hints[column],) for column in row._fields}
    return StoreTable(name, key, {column: KINDS[kind] for column, (kind, *_) in kinds.items()})


JOB: Final = _table("job", StoredJob, "id")
STATE: Final = _table("job_state", StoredState, "job_id")
TICK: Final = _table("tick", StoredTick, "job_id", "due_us")
PAUSE: Final = _table("pause", StoredPause, "scope")
REQUEST: Final = _table("request", StoredRequest, "number")
MADE: Final = _table("made_change", StoredChange, "number")

JOB_BUT_ITS_PAUSE: Final = evolve(JOB, kept=frozenset({"paused", "paused_until_us"}))
"""In a fleet another node may have paused the job, which only a resume ends."""
EXECUTION: Final = _table("execution", Execution, "job_id", "due_us")
PLANNED: Final = _table("planned", Planned, "job_id")
PLACED: Final = _table("placed", Placed, "job_id", "due_us")


def stood(rows: Sequence[Row], pauses: Iterable[Row]) -> Stood:
    job, state = loaded(rows[0]) if rows else (None, None)
    return Stood(job, state, [StoredPause(*row) for row in pauses])


def loaded(row: Row) -> tuple[StoredJob, StoredState | None]:
    width = len(StoredJob._fields)
    state = row[width:]
    return StoredJob(*row[:width]), None if not state or state[0] is None else StoredState(*state)
