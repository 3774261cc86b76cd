"""What must survive the end of the process, as rows: jobs, their states, and the records of their ticks.

The journal notes what happens and writes batches down; it never sends them, and knows no store, no queue, no pool and
no thread but the loop's. Without a store no job has the name of a task, so nobody notes anything. The functions that
turn jobs into rows, and rows into what a job is, are pure.
"""

from .definition import stored_job
from .journal import Journal
from .pending import Flushed, Sealed, ended_tick
from .reading import Reading, check_interval, read, unreadable
from .rows import check_pause, new_row, pause_of, row_of, starting_at, state_of, stays_due, tally_of
from .sound import Wrong, sound_job, sound_pause, sound_state, sound_tick

__all__ = [
    "Flushed",
    "Journal",
    "Reading",
    "Sealed",
    "Wrong",
    "check_interval",
    "check_pause",
    "ended_tick",
    "new_row",
    "pause_of",
    "read",
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
