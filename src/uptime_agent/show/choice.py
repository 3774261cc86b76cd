"""Choose a display."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TextIO

from .display import Display
from .lines import JsonLines, PlainLines


def display_on(stream: TextIO, now: Callable[[], float], *, plain: bool, as_json: bool) -> Display:
    """Return JSON, lines, or on a terminal a table. `now`: UTC seconds."""
    if as_json:
        return JsonLines(stream, now)
    if plain or not stream.isatty() or os.environ.get("TERM") == "dumb":
        return PlainLines(stream, now)
    # Lines need no rich, which takes as long to import as all the rest.
    from rich.console import Console  # noqa: PLC0415

    from .table import LiveTable  # noqa: PLC0415

    return LiveTable(Console(file=stream), sys.stdin)
