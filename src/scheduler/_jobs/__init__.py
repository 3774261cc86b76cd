"""A job, its attempts, how it is called, the list of jobs, and users' options.

Knows no queue, run or store.
"""

from .asked import AskedRun, answer_together
from .call import NotLaunched, awaited, call_of, check_args, on_the_loop
from .current import RUN, CurrentRun, current_run
from .definition import Call, Definition, UnfitRow
from .handle import Job as Handle, JobChanges, SomeSchedule
from .job import Job, JobAttempt
from .job_list import JobList, shard_of_job
from .json_text import LARGEST, check_text, copied, json_text, kept, read_json
from .next_attempt import NextAttempt, Owed
from .options import (
    APART,
    DEFAULT,
    DEFAULT_MAX_RUNNING,
    NO_KWARGS,
    NO_TAGS,
    Policies,
    args_of,
    count_of,
    delay_of,
    flag_of,
    id_of,
    kwargs_of,
    limit_of,
    limits_of,
    part_of,
    parted,
    policy_of,
    poll_of,
    reason_of,
    schedule_of,
    seconds_of,
    some_seconds_of,
    tag_of,
    tags_of,
    text_of,
    until_of,
)
from .ownership import Alone, Ownership
from .tasks import Tasks, decorated, name_of

__all__ = [
    "APART",
    "DEFAULT",
    "DEFAULT_MAX_RUNNING",
    "LARGEST",
    "NO_KWARGS",
    "NO_TAGS",
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
    "Policies",
    "SomeSchedule",
    "Tasks",
    "UnfitRow",
    "answer_together",
    "args_of",
    "awaited",
    "call_of",
    "check_args",
    "check_text",
    "copied",
    "count_of",
    "current_run",
    "decorated",
    "delay_of",
    "flag_of",
    "id_of",
    "json_text",
    "kept",
    "kwargs_of",
    "limit_of",
    "limits_of",
    "name_of",
    "on_the_loop",
    "part_of",
    "parted",
    "policy_of",
    "poll_of",
    "read_json",
    "reason_of",
    "schedule_of",
    "seconds_of",
    "shard_of_job",
    "some_seconds_of",
    "tag_of",
    "tags_of",
    "text_of",
    "until_of",
]
