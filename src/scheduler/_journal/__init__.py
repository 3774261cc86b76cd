"""The journal: what must survive the end of the process is noted, written as rows, and read back.

Journal notes what happens to stored jobs, and seals it into batches. Rows and states are what a store keeps of a job.
Reading a row gives the definition of a job, or the reason why not.

The package writes and never sends: it knows no store, no queue, no pool and no thread. It lives on the thread of the
loop, except for checks of jobs that are about to be stored: these run in the calling thread.
"""

from .aside import Aside
from .definition import stored_job
from .journal import Journal
from .local_writes import LocalWrites
from .pending import MOST_JOBS, ended_tick, missed_tick
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
