"""Rows fitted into a terminal, in cells: some letters take two.

Why a target is not well continues below its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Final

from attrs import frozen
from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

NARROW: Final = 40
MEDIUM: Final = 80
BROAD: Final = 100
WIDE: Final = 140
SHORTEST_NAME: Final = 8
_GAP: Final = 2
_INDENT: Final = 4
_NAME: Final = "name"
_RESULT: Final = "result"
_PHASES: Final = "phases, ms"
_TO_THE_LEFT: Final = frozenset({_NAME, "state", _RESULT, _PHASES})


@frozen
class ShownRow:
    """A row. `why` the target is not well is never cut."""

    cells: Mapping[str, Text]
    why: Text | None = None


@frozen
class _Column:
    name: str
    least: int
    """Cells."""
    terminal: int = 0
    """Least width of a terminal that shows it."""


_COLUMNS: Final = (
    _Column("state", 8),
    _Column("since", 6, MEDIUM),
    _Column("latency", 8, NARROW),
    _Column(_RESULT, 10, NARROW),
    _Column(_PHASES, 30, WIDE),
    _Column("next", 4, MEDIUM),
    _Column("late", 7, MEDIUM),
    _Column("checks", 6, BROAD),
    _Column("down", 4, WIDE),
)


def fitted(rows: Sequence[ShownRow], width: int, room: int) -> tuple[list[Text], int]:
    """The head and fitting lines, and the number of rows."""
    rows = rows[:room]
    widths = _widths(rows, width)
    names = told_apart([row.cells[_NAME].plain for row in rows], widths[_NAME])
    lines: list[Text] = []
    shown = 0
    for row, name in zip(rows, names, strict=True):
        block = _block(ShownRow({**row.cells, _NAME: Text(name)}, row.why), widths, width)
        if lines and len(lines) + len(block) > room:
            break
        lines += block[:room]
        shown += 1
    head = _line({name: Text(name, "bold dim") for name in widths}, widths, width)
    return [head, *lines], shown


def _widths(rows: Sequence[ShownRow], width: int) -> dict[str, int]:
    columns = [each for each in _COLUMNS if width >= each.terminal]
    widths = {each.name: _needed(each, rows) for each in columns}
    longest = max((cell_len(row.cells[_NAME].plain) for row in rows), default=0)
    if _PHASES in widths and width - _taken(widths) < longest:
        del widths[_PHASES]
    name = max(min(longest, width - _taken(widths)), SHORTEST_NAME)
    if _RESULT in widths:
        widths[_RESULT] += max(width - _taken(widths) - name, 0)
    return {_NAME: name, **widths}


def _needed(column: _Column, rows: Sequence[ShownRow]) -> int:
    longest = 0 if column.name == _RESULT else max((cell_len(row.cells[column.name].plain) for row in rows), default=0)
    return max(column.least, longest)


def _taken(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + _GAP * len(widths)


def _block(row: ShownRow, widths: Mapping[str, int], width: int) -> list[Text]:
    if row.why is None or cell_len(row.why.plain) <= widths.get(_RESULT, 0):
        return [_line(row.cells, widths, width)]
    below = [Text(" " * _INDENT + line, row.why.style) for line in _wrapped(row.why.plain, width - _INDENT)]
    return [_line({**row.cells, _RESULT: Text()}, widths, width), *below]


def _wrapped(text: str, width: int) -> list[str]:
    return [piece for line in wrap(text, width) for piece in chop_cells(line, width)]


def _line(cells: Mapping[str, Text], widths: Mapping[str, int], width: int) -> Text:
    line = Text(no_wrap=True)
    for name, room in widths.items():
        cell = cells[name].copy()
        cell.truncate(room, overflow="ellipsis")
        cell.align("left" if name in _TO_THE_LEFT else "right", room)
        line.append(" " * _GAP if line else "").append_text(cell)
    line.truncate(width)
    line.rstrip()
    return line


def told_apart(names: Sequence[str], width: int) -> list[str]:
    """Cut names where most stay different, ideally near a third."""
    best: list[str] = []
    for head in sorted(range(0, width - 1, max(width // 10, 1)), key=lambda head: abs(head - width // 3)):
        cut = [_cut(name, width, head) for name in names]
        best = max(best, cut, key=lambda each: len(set(each)))
        if len(set(best)) == len(names):
            break
    return best


def _cut(name: str, width: int, head: int) -> str:
    if cell_len(name) <= width:
        return name
    return f"{set_cell_size(name, head)}\u2026{set_cell_size(name[::-1], width - head - 1)[::-1]}"
