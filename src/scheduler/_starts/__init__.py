"""Which start of a job stands in the queue, and what keeps it out: pauses, rests after crashes, parking.

Only this package puts a job's next start into the queue or takes it out. It starts no run and knows no store. All on
the loop, except planning new jobs.
"""

from .answers import answer, answer_given_up, ask_for, attempt_ends, go_along, rename
from .calendar_jobs import CalendarJobs
from .clock_guard import ClockGuard
from .crash_floors import CrashFloors
from .left_out import LeftOut
from .missed import MissedTicks
from .parking import Parking
from .pausing import NEVER_EARLY, Pausing
from .slices import in_slices
from .starts import REMOVED, Starts, is_owed_by
from .upcoming import beside_ticks, foreseen_starts, next_start, next_starts
from .why_missed import FOUND_LATE, HAS_RECORD, NOT_STORED, SKIPPED, dropped, ended_by, no_place, waits_for, with_room

__all__ = [
    "FOUND_LATE",
    "HAS_RECORD",
    "NEVER_EARLY",
    "NOT_STORED",
    "REMOVED",
    "SKIPPED",
    "CalendarJobs",
    "ClockGuard",
    "CrashFloors",
    "LeftOut",
    "MissedTicks",
    "Parking",
    "Pausing",
    "Starts",
    "answer",
    "answer_given_up",
    "ask_for",
    "attempt_ends",
    "beside_ticks",
    "dropped",
    "ended_by",
    "foreseen_starts",
    "go_along",
    "in_slices",
    "is_owed_by",
    "next_start",
    "next_starts",
    "no_place",
    "rename",
    "waits_for",
    "with_room",
]
