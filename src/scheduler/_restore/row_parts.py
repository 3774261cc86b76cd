"""The parts that make jobs of a store's rows. Readers of rows are given them as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from .._loop import Core
from ..stores import StoredJob, StoredState
from .crashes import Crashes
from .reconciler import Reconciler
from .row_reader import RowReader

Chunk = list[tuple[StoredJob, StoredState | None]]
"""Some jobs as the store has them."""

Rows = Iterator[Chunk]
"""Jobs as they are read out of a store."""


@frozen(eq=False)
class RowParts:
    """The parts of one scheduler that a row goes through: made sound, made a job, and told of its crashes."""

    core: Core
    row_reader: RowReader
    reconciler: Reconciler
    crashes: Crashes
