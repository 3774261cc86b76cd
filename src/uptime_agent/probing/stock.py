"""Stored metrics, as tables or JSON.

Counters are rates: see postgres/storage/rates.py.
"""

# ruff: noqa: PLC0415 - see the face

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from ..text import printable, wording

if TYPE_CHECKING:
    from ..postgres import Column, ReadableStore, Stock, StoredSample

MOST_SAMPLES: Final = 2_000
WIDTH: Final = 80
_GAP: Final = "  "
_WIDEST: Final = 32
"""Characters of a cell."""


@frozen
class StockRow:
    """A row of a sample. `rates`: growth per second; None: unknown."""

    sample: StoredSample
    values: Mapping[str, Any]
    rates: Mapping[str, float | None]


def stock(store: ReadableStore, target: str | None) -> list[Stock]:
    """Return the stored amounts. Raises StoreUnavailable."""
    return [each for each in store.stock() if target in {None, each.target}]


def stock_lines(found: Sequence[Stock]) -> Iterator[str]:
    """Yield a table of 80 columns."""
    rows = [
        [each.target, each.probe, _count(each.samples), _count(each.rows), _size(each.bytes), wording.stamp(each.last)]
        for each in found
    ]
    yield from table(["target", "probe", "samples", "rows", "about", "last sample"], rows, right=(2, 3, 4))


def stock_in_json(found: Iterable[Stock]) -> Iterator[str]:
    """Yield an object for each target and probe."""
    for each in found:
        yield json.dumps(
            {
                "target": each.target,
                "probe": each.probe,
                "databases": each.databases,
                "samples": each.samples,
                "rows": each.rows,
                "bytes": each.bytes,
                "last": wording.stamp(each.last),
            }
        )


def found_by(
    store: ReadableStore, target: str, probe: str, since: float | None, database: str | None
) -> tuple[list[StockRow], Sequence[Column]]:
    """Return a probe's rows, the latest last, and its columns.

    `since`: UTC seconds; None: the newest. Raises StoreUnavailable.
    """
    from ..postgres import CATALOGUE, IDENTITY, resets

    samples = store.samples(target, probe, database=database, limit=MOST_SAMPLES)
    samples.sort(key=lambda each: (each.at, each.database or ""))
    known = CATALOGUE.get(probe, IDENTITY if probe == IDENTITY.name else None)
    columns = () if known is None else known.columns
    begun_anew = resets(store.samples(target, IDENTITY.name, limit=MOST_SAMPLES))
    newest = {each.database: each.at for each in samples}
    wanted = {id(each) for each in samples if (newest[each.database] == each.at if since is None else each.at >= since)}
    rows = _with_rates(samples, columns, begun_anew)
    return [each for each in rows if id(each.sample) in wanted], columns


def _with_rates(
    samples: Iterable[StoredSample], columns: Sequence[Column], begun_anew: Sequence[float]
) -> list[StockRow]:
    from ..postgres import rates

    keys = [column.name for column in columns if column.is_key]
    counters = [column.name for column in columns if column.is_counter]
    before: dict[tuple[Any, ...], tuple[float, Mapping[str, Any]]] = {}
    found = []
    for sample in samples:
        for row in sample.rows:
            values = dict(zip(sample.columns, row, strict=True))
            key = (sample.database, *(values.get(name) for name in keys))
            at, old = before.get(key, (sample.at, {}))
            grown = {}
            for name in counters:
                points = rates([(at, _number(old.get(name))), (sample.at, _number(values.get(name)))], begun_anew)
                grown[name] = points[-1][1] if points else None
            before[key] = sample.at, values
            found.append(StockRow(sample, values, grown))
    return found


def found_lines(found: Sequence[StockRow], columns: Sequence[Column], width: int = WIDTH) -> Iterator[str]:
    """Yield a table. A single row stands upright."""
    names = [column.name for column in columns] or list(found[0].values if found else ())
    names.sort(key=[column.name for column in columns if column.is_key].__contains__, reverse=True)
    counters = {column.name for column in columns if column.is_counter}
    heads = [f"{name}/s" if name in counters else name for name in names]
    rows = [[_cell(each, name, is_rate=name in counters) for name in names] for each in found]
    if len(found) == 1:
        yield wording.stamp(found[0].sample.at)
        longest = max(map(len, heads), default=0)
        yield from (f"{head:<{longest}}{_GAP}{cell}"[:width] for head, cell in zip(heads, rows[0], strict=True))
        return
    has_databases = any(each.sample.database for each in found)
    own = [[_time(each.sample.at), *([each.sample.database or "-"] if has_databases else [])] for each in found]
    lines = [[*first, *rest] for first, rest in zip(own, rows, strict=True)]
    yield from table(["time", *(["database"] if has_databases else []), *heads], lines, width=width)


def found_in_json(found: Iterable[StockRow]) -> Iterator[str]:
    """Yield an object for each row."""
    for each in found:
        sample = each.sample
        yield json.dumps(
            {
                "target": sample.target,
                "probe": sample.probe,
                "database": sample.database,
                "at": wording.stamp(sample.at),
                "values": dict(each.values),
                "per_second": dict(each.rates),
                "left_out": sample.left_out,
            }
        )


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), width: int = WIDTH
) -> Iterator[str]:
    """Yield a table; the last line names columns without room."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
    shown, taken = 0, -len(_GAP)
    while shown < len(heads) and taken + len(_GAP) + widths[shown] <= width:
        taken += len(_GAP) + widths[shown]
        shown += 1
    shown = max(shown, 1)
    for cells in (heads, *rows):
        parts = [
            f"{cell:>{size}}" if number in right else f"{cell:<{size}}"
            for number, (cell, size) in enumerate(zip(cells[:shown], widths, strict=False))
        ]
        yield _GAP.join(parts).rstrip()[:width]
    if shown < len(heads):
        yield from _wrapped(f"no room for: {', '.join(heads[shown:])} (--json has all)", width)


def _wrapped(text: str, width: int) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    yield line


def _cell(found: StockRow, name: str, *, is_rate: bool) -> str:
    value = found.rates.get(name) if is_rate else found.values.get(name)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.4g}" if isinstance(value, float) else printable(str(value))
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}\u2026"


def _number(value: Any) -> float | None:
    """Large numbers are stored as digits."""
    return None if value is None else float(value)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _count(number: int) -> str:
    return f"{number:,}"


def _size(size: int | None) -> str:
    if size is None:
        return "-"
    return f"{size / 1024**2:.1f} MiB" if size >= 1024**2 else f"{size / 1024:.0f} KiB"
