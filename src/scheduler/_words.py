"""Other schedulers' words, with this scheduler's word for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

OPTIONS: Final[Mapping[str, str]] = {
    "max_instances": "overlap=Overlap.ALLOW, max_running=3 lets three runs go on at a time; one is the default",
    "misfire_grace_time": 'missed=Missed.SKIP, grace="30s" drops what is later than that; by default a late tick runs',
    "coalesce": "missed=Missed.LATEST (the default) makes up for one of several missed ticks, Missed.ALL for each",
    "replace_existing": 'on_conflict="update" keeps counts and next start, and on_conflict="replace" begins again',
    "next_run_time": 'start="now", or start= with a datetime; to let a job wait call job.pause() after add',
    "jitter": 'it is part of the schedule: Every("10s", jitter="1s")',
    "start_date": "start= with a datetime, or schedule.between(start, end)",
    "end_date": "schedule.between(start, end)",
    "timezone": 'it is part of the schedule: Cron("0 9 * * *", tz="Europe/Berlin")',
    "trigger": 'give the schedule in its place: add(func, "@every 10s")',
    "jobstore": "a scheduler has one store: Scheduler(store=...), and durable=False for jobs that need none",
    "executor": "an async def runs on the loop, a def in a worker thread; needs= and limits bound them",
    **dict.fromkeys(
        ("weeks", "days", "hours", "minutes", "seconds"),
        'the length is part of the schedule: add(func, "@every 1m30s")',
    ),
    **dict.fromkeys(
        ("year", "month", "day", "week", "day_of_week", "hour", "minute", "second"),
        'these are fields of a cron expression: add(func, Cron("30 9 * * mon-fri"))',
    ),
}
"""Of `add_job` in APScheduler 3."""

VERBS: Final[Mapping[str, str]] = {
    "add_job": 'add(func, "@every 10s", id="...")',
    "scheduled_job": "task(name), which registers a function for stored jobs, and add",
    "start": "async with Scheduler() as s, or await s.run(); for a thread see docs/recipes.md",
    "shutdown": 'stop(grace="5s")',
    "get_job": "get(id)",
    "get_jobs": "jobs()",
    "print_jobs": "jobs()",
    "remove_job": "remove(id), or job.remove()",
    "remove_all_jobs": "for job in s.jobs(): job.remove()",
    "pause_job": "get(id).pause()",
    "resume_job": "get(id).resume()",
    "modify_job": "get(id).update(...)",
    "reschedule_job": "get(id).update(schedule=...)",
    "add_listener": "listen(listener, RunEnded, RunMissed)",
    "remove_listener": "what listen returns: call it to stop listening",
    "add_jobstore": "Scheduler(store=...)",
    "running": "state is SchedulerState.RUNNING",
    "every": 'add(func, Every("10s"))',
    "run_pending": "async with Scheduler() as s, or await s.run(): it runs what is due by itself",
}
"""Of APScheduler 3, and of the package schedule on PyPI."""


def refuse_options(verb: str, names: Iterable[str]) -> NoReturn:
    name = min(names, key=lambda name: name not in OPTIONS)
    hint = f": {OPTIONS[name]}" if name in OPTIONS else ""
    msg = f"{verb}() got an unexpected keyword argument {name!r}{hint}"
    raise TypeError(msg)


def refuse_verb(name: str) -> NoReturn:
    hint = f": write {VERBS[name]}" if name in VERBS else ""
    msg = f"a Scheduler has no attribute {name!r}{hint}"
    raise AttributeError(msg)
