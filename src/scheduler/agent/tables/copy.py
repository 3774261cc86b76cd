"""The copy of the last good rows, on disk: an agent that starts while their database is away begins with it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import asdict

from .rows import Row

_FORM: Final = 1


def written(file: Path, rows: Sequence[Row], at: float) -> None:
    """Put these rows in the place of those before, as a whole. `at`: UTC seconds. Raises OSError."""
    beside = file.with_name(f"{file.name}.new")
    content = json.dumps({"form": _FORM, "at": at, "rows": [asdict(row) for row in rows]})
    beside.touch(mode=0o600)
    with beside.open("w", encoding="utf-8") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    beside.replace(file)


def read_back(file: Path) -> tuple[list[Row], float] | None:
    """Return the rows, and when they were read; None: there is no copy, or none that makes sense."""
    try:
        found = json.loads(file.read_text("utf-8"))
        if found["form"] != _FORM:
            return None
        return [Row(each["table"], each["key"], each["values"]) for each in found["rows"]], float(found["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
