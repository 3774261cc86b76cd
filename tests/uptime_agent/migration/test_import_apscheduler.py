"""`timerqueue import apscheduler`: the jobs of an APScheduler 3 are judged, and then all are stored, or none."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit import nothing
from scheduler import Scheduler
from scheduler.stores.sqlite import SQLiteStore
from timerqueue.testing import ManualClock

HERE = Path(__file__).parent
PROGRAM = """
import ordinary_jobs
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import AndTrigger
from apscheduler.triggers.interval import IntervalTrigger
from ordinary_jobs import poll, report

scheduler = BackgroundScheduler(timezone="UTC")
"""


@pytest.fixture
def old_jobs(tmp_path, monkeypatch):
    """Make the job store of the program with 25 jobs, and go where its module is found."""
    url = f"sqlite:///{tmp_path / 'old.sqlite'}"
    monkeypatch.setenv("OLD_JOBS", url)
    command = [sys.executable, "-c", "import ordinary_jobs; ordinary_jobs.fill()"]
    subprocess.run(command, cwd=HERE, env={**os.environ, "OLD_JOBS": url}, check=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ordinary_jobs.py").write_text((HERE / "ordinary_jobs.py").read_text("utf-8"), "utf-8")
    return tmp_path / "old.sqlite"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Write a program whose scheduler has these jobs besides, in memory."""
    monkeypatch.setenv("OLD_JOBS", "sqlite://")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ordinary_jobs.py").write_text((HERE / "ordinary_jobs.py").read_text("utf-8"), "utf-8")

    def write(lines):
        (tmp_path / "program.py").write_text(PROGRAM + lines, "utf-8")

    return write


def rows_of(file):
    """Read rows and states out of a store that nobody has open."""
    store = SQLiteStore(file)
    store.open(0, lambda: None)
    try:
        return {row.id: (row, state) for some in store.load() for row, state in some}
    finally:
        store.close()


IMPORT = ("import", "apscheduler", "ordinary_jobs:scheduler", "--store", "sqlite:///jobs.db")


async def test_25_jobs_are_stored_and_a_second_time_nothing_changes(old_jobs, tmp_path, ran):
    """Each is carried over, with what APScheduler says of it; the job store stays as it is."""
    before = old_jobs.read_bytes()

    code, out, err = await ran(*IMPORT)
    assert (code, err) == (0, "")
    first = rows_of(tmp_path / "jobs.db")
    assert len(first) == 25
    assert out.count("  new  ") == 25

    code, out, err = await ran(*IMPORT)
    assert (code, err) == (0, "")
    assert rows_of(tmp_path / "jobs.db") == first
    assert out.count("  unchanged  ") == 25
    assert old_jobs.read_bytes() == before


CARRIED = {
    "jitter": ("@every 1m", "jitter=10s", {"missed": "skip"}),
    "starts later": ("@every 5m", " from 2036-01-31T12:00:00+00:00", {"missed": "skip"}),
    "ends": ("@every 1h", " until 2035-12-31T23:00:00.000001+00:00", {"missed": "skip"}),
    "all within a minute": ("@every 10s", "", {"missed": "all", "catch_up": 6}),
    "all": ("@every 30s", "", {"missed": "all"}),
    "one after the other": ("@every 30s", "", {"missed": "skip"}),
    "however late": ("@every 6h", "", {}),
    "three at a time": ("@every 15s", "", {"missed": "skip", "overlap": "allow", "max_running": 3}),
    "by number": ("CRON_TZ=Europe/Berlin 0 9 * * mon-fri", "", {"missed": "skip"}),
    "every other day": ("CRON_TZ=Europe/Berlin 0 9 * * mon,wed,fri,sun", "", {"missed": "skip"}),
    "crontab": ("CRON_TZ=Europe/Berlin */15 8-18 * * sat,sun", "", {"missed": "skip"}),
    "cron jitter": ("CRON_TZ=Europe/Berlin H(0-30) 0 * * * *", "", {"missed": "skip"}),
    "last day": ("CRON_TZ=Europe/Berlin 30 23 L * *", "", {"missed": "skip"}),
    "first monday": ("CRON_TZ=Europe/Berlin 0 6 * * mon#1", "", {"missed": "skip"}),
    "second tuesday": ("CRON_TZ=Europe/Berlin 0 6 * * tue#2", "", {"missed": "skip"}),
    "some years": ("0 0 0 1 jan,jul * 2027-2036", "", {"missed": "skip"}),
    "either": ("CRON_TZ=Europe/Berlin 0 3 * * * | CRON_TZ=Europe/Berlin 0 17 * * friL", "", {"missed": "skip"}),
    "monthly": ("@calendar 1 month origin=2026-01-15T11:00:00+00:00", " tz=Europe/Berlin", {"missed": "skip"}),
    "once": ("@at 2036-01-31T12:00:00+00:00", "", {"missed": "skip"}),
}


async def test_each_job_is_what_it_was(old_jobs, tmp_path, ran):
    """Schedule and options, and what the page said it could not translate."""
    await ran(*IMPORT)
    rows = {id: row for id, (row, _) in rows_of(tmp_path / "jobs.db").items()}
    found = {id: (rows[id].schedule, json.loads(rows[id].options)) for id in CARRIED}
    for id, (start, end, options) in CARRIED.items():
        schedule, said = found[id]
        assert schedule.startswith(start), id
        assert schedule.endswith(end), id
        assert said == options, id
    assert (rows["arguments"].args, rows["arguments"].kwargs) == ('["db"]', '{"port":5432}')
    assert (rows["named"].name, rows["interval"].name) == ("the poll", None)
    assert (rows["paused"].paused, rows["interval"].paused) == ("it was paused in APScheduler", None)
    assert {row.task for row in rows.values()} == {"ordinary_jobs.poll", "ordinary_jobs.report"}


SOON = {"all within a minute", "three at a time", "seconds", "all", "one after the other"}
"""Jobs whose planned start may pass before the import begins: they start every 10 to 30 seconds."""


async def test_each_job_goes_on_where_it_was(old_jobs, tmp_path, ran):
    """Its next start is the one that APScheduler had planned, be it by hand, or with a jitter."""
    began = datetime.now(UTC)
    await ran(*IMPORT)
    with closing(sqlite3.connect(old_jobs)) as connection:
        planned = dict(connection.execute("SELECT id, next_run_time FROM apscheduler_jobs"))
    async with Scheduler(store=SQLiteStore(tmp_path / "jobs.db"), clock=ManualClock(began)) as s:
        for name in ("poll", "report"):
            s.register(f"ordinary_jobs.{name}", nothing)
        assert [job.error for job in s.jobs() if job.error] == ["it was paused in APScheduler"]
        starts = {job.id: job.next_start.timestamp() for job in s.jobs() if job.id != "paused"}
    later = {id: at for id, at in planned.items() if at and at > began.timestamp()}
    left_out = planned.keys() - later.keys()
    assert {"paused", "monthly"} <= left_out <= {"paused", "monthly", *SOON}  # monthly counts from last January
    assert {id: starts[id] for id in later} == pytest.approx(later, abs=0.001)


async def test_jobs_go_into_postgresql(program, url, ran):
    """The same, on a server: a second time nothing is new."""
    program('scheduler.add_job(poll, "interval", minutes=1, id="a")\n')
    for became in ("new", "unchanged"):
        code, out, err = await ran("import", "apscheduler", "program:scheduler", "--store", url)
        assert (code, err) == (0, "")
        assert out.splitlines()[1].split()[:2] == ["a", became]


BAD = """
scheduler.add_job(lambda: 1, "interval", minutes=1, id="a lambda")
scheduler.add_job(poll, AndTrigger([IntervalTrigger(hours=1), IntervalTrigger(hours=2)]), id="both")
scheduler.add_job(poll, "cron", week=3, id="weeks")
scheduler.add_job(poll, "interval", minutes=1, args=[object()], id="an object")
scheduler.add_job(poll, "cron", second="*", coalesce=False, misfire_grace_time=60, id="a grace")
scheduler.add_job(poll, "interval", minutes=1, id="good")
"""


async def test_all_that_is_refused_is_told_and_nothing_is_stored(program, tmp_path, ran):
    """In one round, each with its reason; what is left out by name is left out."""
    program(BAD)
    command = ("import", "apscheduler", "program:scheduler", "--store", "sqlite:///jobs.db")
    code, out, err = await ran(*command)
    assert code == 1
    assert "5 of 6 jobs are refused, so none is stored" in err
    reasons = ("is found by no name", "AndTrigger", "week=3", "args", "coalesce=False with misfire_grace_time=60")
    assert [reason for reason in reasons if reason not in out] == []
    assert not (tmp_path / "jobs.db").exists()

    bad = ("a lambda", "both", "weeks", "an object", "a grace")
    code, out, err = await ran(*command, *(word for id in bad for word in ("--without", id)))
    assert (code, err) == (0, "")
    assert set(rows_of(tmp_path / "jobs.db")) == {"good"}


async def test_a_job_that_cannot_be_restored_stays_and_is_refused(old_jobs, tmp_path, ran):
    """APScheduler deletes it, and logs that. An import that does so loses it for good."""
    with closing(sqlite3.connect(old_jobs)) as connection, connection:
        connection.execute("UPDATE apscheduler_jobs SET job_state = X'80' WHERE id = 'once'")
    before = old_jobs.read_bytes()
    code, out, _ = await ran(*IMPORT)
    assert code == 1
    assert "APScheduler cannot restore it" in out
    assert old_jobs.read_bytes() == before


async def test_jobs_without_ids_are_found_again(program, tmp_path, ran):
    """They have other ids in each process: the name of the function is what stays. What has changed is changed."""
    lines = 'scheduler.add_job(poll, "interval", minutes={})\nscheduler.add_job(poll, "interval", hours=1)\n'
    command = ("import", "apscheduler", "program:scheduler", "--store", "sqlite:///jobs.db")
    program(lines.format(1))
    await ran(*command)
    program(lines.format(20))  # longer: Python takes a file of the same length and second for the same
    code, out, err = await ran(*command)
    assert (code, err) == (0, "")
    rows = {id: row.schedule for id, (row, _) in rows_of(tmp_path / "jobs.db").items()}
    assert rows == {"ordinary_jobs.poll": "@every 20m", "ordinary_jobs.poll-2": "@every 1h"}
    assert [line.split()[1] for line in out.splitlines()[1:3]] == ["changed", "unchanged"]


async def test_a_scheduler_that_its_module_starts_runs_nothing_here(program, ran):
    """It is paused as soon as it is found; and so it is if a function makes it."""
    program(
        'scheduler.add_job(poll, "interval", hours=1, id="a")\nscheduler.start()\ndef make():\n    return scheduler\n'
    )
    for name in ("scheduler", "make"):
        code, out, err = await ran("import", "apscheduler", f"program:{name}", "--dry-run")
        assert (code, err) == (0, "")
        assert "ordinary_jobs.poll" in out


async def test_a_dry_run_makes_nothing(old_jobs, tmp_path, ran):
    """No file, and no row."""
    code, out, err = await ran(*IMPORT, "--dry-run")
    assert (code, err) == (0, "")
    assert out.count("  ready  ") == 25
    assert not (tmp_path / "jobs.db").exists()


async def test_functions_have_the_names_that_are_chosen(program, tmp_path, ran):
    """A dict says them, as for `timerqueue worker`."""
    program('scheduler.add_job(poll, "interval", hours=1, id="a")\nTASKS = {"ask": poll}\n')
    code, _, err = await ran(
        "import", "apscheduler", "program:scheduler", "--store", "sqlite:///jobs.db", "--tasks", "program:TASKS"
    )
    assert (code, err) == (0, "")
    assert rows_of(tmp_path / "jobs.db")["a"][0].task == "ask"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("program",), "write MODULE:NAME, such as myapp.jobs:scheduler"),
        (("nowhere:scheduler",), "nowhere cannot be imported"),
        (("program:poll_",), "None, no scheduler of APScheduler 3"),
        (("program:scheduler", "--without", "b"), "there is no job 'b'"),
    ],
)
async def test_what_is_no_scheduler_is_told(program, ran, args, text):
    """Exit code 2: called wrongly."""
    program('scheduler.add_job(poll, "interval", hours=1, id="a")\n')
    code, _, err = await ran("import", "apscheduler", *args, "--dry-run")
    assert code == 2
    assert text in err


async def test_without_a_place_it_says_what_to_give(program, ran):
    """No store is guessed."""
    program("")
    code, _, err = await ran("import", "apscheduler", "program:scheduler")
    assert code == 2
    assert "--store sqlite:///jobs.db" in err
