"""Options of jobs, checked; definitions of jobs as values, as text and as JSON.

Knows no job that runs, and no scheduler.
"""

from .info import Informed, JobInfo, RunInfo
from .json_text import LARGEST, check_text, copied, json_text, kept, read_json
from .options import (
    APART,
    DEFAULT,
    NO_KWARGS,
    NO_TAGS,
    SomeSchedule,
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
from .options_text import options_text, read_options
from .policies import SHARED_POLICIES, Policies
from .reading import from_json, json_schema_of
from .spec import JobSpec, typed
from .spec_json import path_of
from .waited import LATE, MOST_HOLDERS, Holder, Waited, waited_of, waited_text
from .writing import to_json

__all__ = [
    "APART",
    "DEFAULT",
    "LARGEST",
    "LATE",
    "MOST_HOLDERS",
    "NO_KWARGS",
    "NO_TAGS",
    "SHARED_POLICIES",
    "Holder",
    "Informed",
    "JobInfo",
    "JobSpec",
    "Policies",
    "RunInfo",
    "SomeSchedule",
    "Waited",
    "args_of",
    "check_text",
    "copied",
    "count_of",
    "delay_of",
    "flag_of",
    "from_json",
    "id_of",
    "json_schema_of",
    "json_text",
    "kept",
    "kwargs_of",
    "limit_of",
    "limits_of",
    "options_text",
    "part_of",
    "parted",
    "path_of",
    "policy_of",
    "poll_of",
    "read_json",
    "read_options",
    "reason_of",
    "schedule_of",
    "seconds_of",
    "some_seconds_of",
    "tag_of",
    "tags_of",
    "text_of",
    "to_json",
    "typed",
    "until_of",
    "waited_of",
    "waited_text",
]
