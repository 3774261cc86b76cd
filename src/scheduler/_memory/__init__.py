"""How jobs become durable, and how rows become jobs.

Memory opens a store, reads it and closes it. Commits send it what the journal has noted, and act on its answers.
Reconciler makes jobs of rows, and lets jobs follow rows that others change, which Polling sees.

The only folder that calls a Store. It sees everything below, and nothing below sees it. All of it lives on the loop's
thread, but for the calls of a store that waits, which a writer makes in a thread of its own.
"""

from .commits import Commits
from .crashes import Crashes
from .history import Record, record_of
from .intake import Intake
from .memory import Memory
from .polling import Polling
from .reconciler import Reconciler
from .writer import InlineWriter, ThreadWriter, Writer

__all__ = [
    "Commits",
    "Crashes",
    "InlineWriter",
    "Intake",
    "Memory",
    "Polling",
    "Reconciler",
    "Record",
    "ThreadWriter",
    "Writer",
    "record_of",
]
