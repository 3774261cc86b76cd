"""Another distribution's `schedule` or `scheduler`, installed over ours: our packages say so when they are imported."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import schedule
from kit import PATIENCE

SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.fixture
def installed(tmp_path):
    """Our packages as they are installed, to be spoiled."""
    for name in ("timerqueue", "schedule", "scheduler"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCE / name, tmp_path / name, ignore=ignored)
    return tmp_path


def said(folder, program):
    """Return what a program says that imports from there, and not from our source."""
    where = f"import sys; sys.path[:] = [{str(folder)!r}] + [each for each in sys.path if each != {str(SOURCE)!r}]"
    done = subprocess.run(
        [sys.executable, "-c", f"{where}\n{program}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=folder.parent,
    )
    return done.stdout + done.stderr


def test_nothing_is_said_of_our_own(installed):
    """Whichever is imported first."""
    assert said(installed, "import schedule, scheduler, timerqueue; print(schedule.__file__)").startswith(
        str(installed)
    )
    assert said(installed, "import scheduler, schedule") == ""


def test_a_strange_schedule_is_named_as_scheduler_is_imported(installed):
    """It said: cannot import name 'Missed'."""
    (installed / "schedule" / "__init__.py").write_text("class Job: ...\n")
    text = said(installed, "import scheduler")
    assert "ImportError: <module 'schedule' from" in text
    assert "pip install --force-reinstall --no-deps timerqueue" in text.replace("\n", " ")


@pytest.mark.skipif(
    not Path(schedule.__file__).is_relative_to(SOURCE), reason="the installed one would be found instead"
)
def test_a_schedule_that_was_removed_is_told_as_scheduler_is_imported(installed):
    """Uninstalling the other takes our file along."""
    (installed / "schedule" / "__init__.py").unlink()
    assert "pip install --force-reinstall --no-deps timerqueue" in said(installed, "import scheduler")


def test_what_our_schedule_lacks_is_no_neighbours_fault(installed):
    """A dependency that is missing is named as it is."""
    (installed / "schedule" / "_at.py").write_text("import nowhere_at_all\n")
    text = said(installed, "import scheduler")
    assert "No module named 'nowhere_at_all'" in text
    assert "force-reinstall" not in text


def test_a_strange_scheduler_is_named_as_schedule_is_imported(installed):
    """Its own import works: `from scheduler import Scheduler` finds another one."""
    (installed / "scheduler" / "__init__.py").write_text("class Scheduler: ...\n")
    text = said(installed, "import schedule")
    assert "is not that of timerqueue" in text
    assert "pip uninstall scheduler" in text


def test_a_scheduler_that_was_removed_is_told_as_schedule_is_imported(installed):
    """As an empty namespace it could still be imported."""
    (installed / "scheduler" / "__init__.py").unlink()
    assert "has lost its files" in said(installed, "import schedule")


def test_a_file_of_the_users_elsewhere_is_no_neighbour(installed, tmp_path):
    """Whoever calls a program scheduler.py may use our schedules."""
    elsewhere = tmp_path / "mine"
    elsewhere.mkdir()
    (elsewhere / "scheduler.py").write_text("import schedule; print(schedule.Every(10))")
    assert "every 10s" in said(installed, f"sys.path.insert(0, {str(elsewhere)!r}); import scheduler")


def test_schedule_alone_is_fine(installed):
    """Somebody may have copied it into a program of theirs."""
    shutil.rmtree(installed / "scheduler")
    assert said(installed, "import schedule") == ""
