"""A job, its attempts, how it is called, and the list of jobs.

Knows no queue, run or store.
"""

from .asked import AskedRun, answer_together
from .call import NotLaunched, awaited, call_of, check_args, on_the_loop
from .current import RUN, CurrentRun, current_run
from .definition import Call, Definition, UnfitRow
from .handle import Job as Handle, JobChanges
from .job import Job, JobAttempt
from .job_list import JobList, shard_of_job
from .next_attempt import NextAttempt, Owed
from .ownership import Alone, Ownership
from .tasks import Tasks, decorated, name_of
from .told import info_of, is_inline, is_like, spec_of

__all__ = [
    "RUN",
    "Alone",
    "AskedRun",
    "Call",
    "CurrentRun",
    "Definition",
    "Handle",
    "Job",
    "JobAttempt",
    "JobChanges",
    "JobList",
    "NextAttempt",
    "NotLaunched",
    "Owed",
    "Ownership",
    "Tasks",
    "UnfitRow",
    "answer_together",
    "awaited",
    "call_of",
    "check_args",
    "current_run",
    "decorated",
    "info_of",
    "is_inline",
    "is_like",
    "name_of",
    "on_the_loop",
    "shard_of_job",
    "spec_of",
]
