"""Handlers of routes: jobs, acts, sets, limits and figures, over public verbs of a scheduler.

Knows no HTTP but statuses, and no table of routes.
"""

from .acts import STARTED, Pausing, Starting, pause_job, resume_job, run_job, set_next_start, skip_job, supersede_job
from .bulk import Confirmed, ConfirmedPause, pause_jobs, resume_jobs, run_jobs, skip_jobs
from .changes import ChangesAsked, list_changes
from .events import EventsAsked, stream_events
from .fleet import QueueAsked, get_fleet, get_queue
from .jobs import (
    Owned,
    RunsAsked,
    StartsAsked,
    WhyAsked,
    delete_job,
    get_job,
    get_why,
    list_runs,
    list_starts,
    patch_job,
    put_job,
    read_definition,
)
from .listing import LISTED, Filter, Listing, list_jobs
from .overview import SIZES, get_limits, healthz, patch_limits, read_sizes, readyz, summary
from .sets import LARGE, SetAsked, put_set, read_set
from .writes import durable, refuse_unless_running

__all__ = [
    "LARGE",
    "LISTED",
    "SIZES",
    "STARTED",
    "ChangesAsked",
    "Confirmed",
    "ConfirmedPause",
    "EventsAsked",
    "Filter",
    "Listing",
    "Owned",
    "Pausing",
    "QueueAsked",
    "RunsAsked",
    "SetAsked",
    "Starting",
    "StartsAsked",
    "WhyAsked",
    "delete_job",
    "durable",
    "get_fleet",
    "get_job",
    "get_limits",
    "get_queue",
    "get_why",
    "healthz",
    "list_changes",
    "list_jobs",
    "list_runs",
    "list_starts",
    "patch_job",
    "patch_limits",
    "pause_job",
    "pause_jobs",
    "put_job",
    "put_set",
    "read_definition",
    "read_set",
    "read_sizes",
    "readyz",
    "refuse_unless_running",
    "resume_job",
    "resume_jobs",
    "run_job",
    "run_jobs",
    "set_next_start",
    "skip_job",
    "skip_jobs",
    "stream_events",
    "summary",
    "supersede_job",
]
