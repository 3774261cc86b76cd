"""The journal notes what must survive the process, writes it as rows, and reads them back.

It never sends. On the loop's thread, except checks of jobs before they are stored.
"""

from .aside import Aside
from .definition import columns_of, stored_job
from .journal import Journal
from .local_writes import LocalWrites
from .pending import MOST_JOBS
from .reading import Reading, check_interval, read, unreadable
from .results import result_text
from .rows import (
    check_pause,
    known_row,
    new_row,
    pause_of,
    requested,
    row_of,
    starting_at,
    state_of,
    stays_due,
    tally_of,
)
from .sanitize import Wrong, sound_job, sound_pause, sound_state, sound_tick
from .sealed import Flushed, Sealed
from .ticks import ended_tick, missed_tick

__all__ = [
    "MOST_JOBS",
    "Aside",
    "Flushed",
    "Journal",
    "LocalWrites",
    "Reading",
    "Sealed",
    "Wrong",
    "check_interval",
    "check_pause",
    "columns_of",
    "ended_tick",
    "known_row",
    "missed_tick",
    "new_row",
    "pause_of",
    "read",
    "requested",
    "result_text",
    "row_of",
    "sound_job",
    "sound_pause",
    "sound_state",
    "sound_tick",
    "starting_at",
    "state_of",
    "stays_due",
    "stored_job",
    "tally_of",
    "unreadable",
]
