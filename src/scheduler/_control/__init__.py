"""The verbs of users: jobs are added, removed, paused, changed and run by hand.

Changes of a start or a run go to the loop. Besides the list of jobs, this is the only package whose methods other
threads may call. It knows whether the store has been read (`Early`), and not what a store is.
"""

from .conflict import OnConflict, duplicate
from .early import EarlyJob
from .fleet import fleet_of
from .new_jobs import NewJob, SomeJob
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
    "duplicate",
    "fleet_of",
    "skip",
    "supersede",
]
