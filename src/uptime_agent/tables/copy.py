"""A copy on disk of the tables' last valid rows, for a start without their database."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from .rows import TableRow

_FORM: Final = 2
_LAST: Final = 253_370_764_800


def written(file: Path, origin: str, rows: Sequence[TableRow], at: float) -> None:
    """Replace the copy. `at`: UTC seconds. Raises OSError."""
    beside = file.with_name(f"{file.name}.new")
    kept = [{"table": row.table, "key": row.key, "values": row.values} for row in rows]
    content = json.dumps({"form": _FORM, "from": origin, "at": at, "rows": kept})
    beside.touch(mode=0o600)
    with beside.open("w", encoding="utf-8") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    beside.replace(file)


def read_back(file: Path, origin: str) -> tuple[list[TableRow], float] | None:
    """Return the rows, and the UTC seconds when they were read; None: no valid copy of this origin."""
    try:
        found = json.loads(file.read_text("utf-8"))
        at = float(found["at"])
        if (found["form"], found["from"]) != (_FORM, origin) or not 0 <= at <= _LAST:
            return None
        return [TableRow(str(each["table"]), str(each["key"]), each["values"]) for each in found["rows"]], at
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
