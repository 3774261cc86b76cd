"""The loop: which jobs are due now, and on whose thread.

Knows no store and no handle.
"""

from .core import Core
from .long_work import LongWork
from .loop import Loop
from .sliced_changes import SlicedChanges
from .stall import StallWatch
from .turn import Turn

__all__ = [
    "Core",
    "LongWork",
    "Loop",
    "SlicedChanges",
    "StallWatch",
    "Turn",
]
