"""How rows become jobs again.

On the loop's thread.
"""

from .crashes import NOTHING_LOST, Crashes, Lost, lost_by_job
from .elsewhere import leave_to_others, let_go_of
from .pauses import pauses_to_follow
from .reconciler import Reconciler
from .row_parts import Chunk, RowParts, Rows
from .row_reader import RowReader

__all__ = [
    "NOTHING_LOST",
    "Chunk",
    "Crashes",
    "Lost",
    "Reconciler",
    "RowParts",
    "RowReader",
    "Rows",
    "leave_to_others",
    "let_go_of",
    "lost_by_job",
    "pauses_to_follow",
]
