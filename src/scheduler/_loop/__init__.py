"""The loop: what is due now, and on whose thread. The turns of the queue, the clock that they follow, and the watch for
a loop that stands still.

A turn brings plain jobs the short way and all others the long way, which is one decision and so one file. It knows no
store and no handle. `Loop.call` is how other threads hand over what they want done. LongWork is for what concerns many
jobs, and SlicedChanges changes many jobs a few at a time.
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
