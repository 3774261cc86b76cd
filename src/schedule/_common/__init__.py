"""The parts that all schedules share: instants, durations, phases, wall clocks, and errors.

Offers `Schedule` itself, and reads no clock.
"""

from .duration import duration, duration_text, positive
from .errors import ScheduleError, shown
from .foreign import item_meant, line_advice
from .instant import EPOCH, FIRST_INSTANT, LAST_INSTANT, MICROSECOND, aware, instant, micros, utc
from .phase import phase, phase_us, stable_hash
from .schedule import AnyOf, Between, Except, Schedule, Window, answer
from .wall import SECOND, change, find_zone, first_instant, offsets, zone_name

__all__ = [
    "EPOCH",
    "FIRST_INSTANT",
    "LAST_INSTANT",
    "MICROSECOND",
    "SECOND",
    "AnyOf",
    "Between",
    "Except",
    "Schedule",
    "ScheduleError",
    "Window",
    "answer",
    "aware",
    "change",
    "duration",
    "duration_text",
    "find_zone",
    "first_instant",
    "instant",
    "item_meant",
    "line_advice",
    "micros",
    "offsets",
    "phase",
    "phase_us",
    "positive",
    "shown",
    "stable_hash",
    "utc",
    "zone_name",
]
