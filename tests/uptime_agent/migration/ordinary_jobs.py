"""A program with 25 ordinary jobs in an APScheduler 3: what `timerqueue import apscheduler` is given in tests.

`OLD_JOBS` is the URL of its job store.
"""

import os
from datetime import UTC, date, datetime

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.calendarinterval import CalendarIntervalTrigger
from apscheduler.triggers.combining import OrTrigger
from apscheduler.triggers.cron import CronTrigger

ZONE = "Europe/Berlin"
LATER = datetime(2036, 1, 31, 12, tzinfo=UTC)

scheduler = BackgroundScheduler(
    jobstores={"default": SQLAlchemyJobStore(url=os.environ["OLD_JOBS"])},
    timezone=ZONE,
    job_defaults={"coalesce": True},
)


def poll(host="localhost", port=80):
    raise AssertionError("an import runs no job")


async def report(*names):
    raise AssertionError("an import runs no job")


def cron(**fields):
    return CronTrigger(timezone=ZONE, **fields)


JOBS = {
    "interval": (poll, "interval", {"minutes": 5}),
    "jitter": (poll, "interval", {"minutes": 1, "jitter": 10}),
    "starts later": (poll, "interval", {"minutes": 5, "start_date": LATER}),
    "ends": (poll, "interval", {"hours": 1, "start_date": "2026-01-01 00:00:00", "end_date": "2036-01-01 00:00:00"}),
    "all within a minute": (poll, "interval", {"seconds": 10, "coalesce": False, "misfire_grace_time": 60}),
    "all": (poll, "interval", {"seconds": 30, "coalesce": False, "misfire_grace_time": None}),
    "one after the other": (poll, "interval", {"seconds": 30, "coalesce": False}),
    "however late": (poll, "interval", {"hours": 6, "misfire_grace_time": None}),
    "three at a time": (poll, "interval", {"seconds": 15, "max_instances": 3}),
    "arguments": (poll, "interval", {"minutes": 1, "args": ["db"], "kwargs": {"port": 5432}}),
    "named": (poll, "interval", {"minutes": 2, "name": "the poll"}),
    "at work": (report, "cron", {"hour": 9, "day_of_week": "mon-fri"}),
    "by number": (report, "cron", {"hour": 9, "day_of_week": "0-4"}),
    "every other day": (report, "cron", {"hour": 9, "day_of_week": "*/2"}),
    "crontab": (report, CronTrigger.from_crontab("*/15 8-18 * * 5,6", timezone=ZONE), {}),
    "seconds": (report, "cron", {"second": "*/20"}),
    "cron jitter": (report, "cron", {"minute": 0, "jitter": 30}),
    "last day": (report, "cron", {"day": "last", "hour": 23, "minute": 30}),
    "first monday": (report, "cron", {"day": "1st mon", "hour": 6}),
    "second tuesday": (report, "cron", {"day": "8-14", "day_of_week": "tue", "hour": 6}),
    "some years": (report, "cron", {"year": "2027-2036", "month": "jan,jul", "day": 1, "timezone": "UTC"}),
    "either": (report, OrTrigger([cron(hour=3), cron(day="last fri", hour=17)]), {}),
    "monthly": (
        report,
        CalendarIntervalTrigger(months=1, hour=12, start_date=date(2026, 1, 15), timezone=ZONE),
        {"args": ["a", "b"]},
    ),
    "once": (report, "date", {"run_date": LATER}),
    "paused": (report, "interval", {"hours": 2, "next_run_time": None}),
}


def fill():
    """Put the jobs into the job store, as the program has done it long ago."""
    scheduler.start(paused=True)
    for id, (func, trigger, options) in JOBS.items():
        scheduler.add_job(func, trigger, id=id, **options)
    # no shutdown(): it would run what is due
