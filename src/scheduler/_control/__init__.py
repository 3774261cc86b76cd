"""The verbs of users: jobs are added, removed, paused, changed and run by hand.

Any thread may call them, and the list of jobs; changes of a start or a run go to the loop.
"""

from .conflict import OnConflict, check_conflict, duplicate
from .early import EarlyJob
from .fleet import fleet_of
from .new_jobs import NewJob, SomeJob, refuse
from .parts import PartedRegistry
from .registry import Registry
from .run_once import RunOnce
from .skipping import skip, supersede
from .update import Updates

__all__ = [
    "EarlyJob",
    "NewJob",
    "OnConflict",
    "PartedRegistry",
    "Registry",
    "RunOnce",
    "SomeJob",
    "Updates",
    "check_conflict",
    "duplicate",
    "fleet_of",
    "refuse",
    "skip",
    "supersede",
]
