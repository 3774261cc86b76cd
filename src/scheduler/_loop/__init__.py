"""The loop: what is due now, and on whose thread. Turns of the queue, the clock, the stall watch.

A turn takes plain jobs the short way and all others the long way. That is one decision, and so one file. It knows no
store and no handle. Other threads hand work over with `Loop.call`. LongWork is for work on many jobs, SlicedChanges for
changes of many.
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
