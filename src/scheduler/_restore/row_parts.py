from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from .._loop import Core
from ..stores import StoredJob, StoredState
from .crashes import Crashes
from .reconciler import Reconciler
from .row_reader import RowReader

Chunk = list[tuple[StoredJob, StoredState | None]]
"""Jobs as stored."""

Rows = Iterator[Chunk]


@frozen(eq=False)
class RowParts:
    core: Core
    row_reader: RowReader
    reconciler: Reconciler
    crashes: Crashes
