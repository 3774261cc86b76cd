"""The house rules that no linter knows: short functions and files, one reader of the clock, tests without packages."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
TEST_FILES = sorted((ROOT / "tests").rglob("test_*.py"))

LONGEST_FUNCTION = 70
LONGEST_FILE = 300
LONGEST_EXCEPTION = 400
LONGER = {
    "scheduler/_commits/commits.py": "one loop over batches: what it does after each answer is read as a whole",
    "scheduler/_control/parts.py": "the verbs of a job in parts, in step with those of a plain job",
    "scheduler/_control/registry.py": "one add and many adds share each step",
    "scheduler/_fleet/node.py": "what a node does at each answer of its lease",
    "scheduler/_fleet/queue/dispatch.py": "the way of an execution, in and out",
    "scheduler/_jobs/job.py": "one class: the slots of a job, and its handle's verbs",
    "scheduler/_journal/journal.py": "one note for each kind of change",
    "scheduler/_restore/reconciler.py": "one row becomes one job, whatever it was before",
    "scheduler/_runs/bundles.py": "the quick way of plain runs, written out",
    "scheduler/_runs/run.py": "one class: a run from room to outcome",
    "scheduler/_runs/runs.py": "the way of a tick from the heap to its end",
    "scheduler/_scheduler.py": "the options of a scheduler and of its jobs, documented for help()",
    "scheduler/_shape/options.py": "one check for each option, in a table at the end",
    "scheduler/_values/events.py": "every event, documented for help()",
    "scheduler/_values/statistics.py": "every count, documented for help()",
    "scheduler/stores/_postgres/connection.py": "every way in which a connection fails",
    "scheduler/stores/_postgres/execution_statements.py": "SQL",
    "scheduler/stores/_postgres/sharing/sharing.py": "one method for each verb of the protocol",
    "scheduler/stores/_postgres/statements.py": "SQL",
    "scheduler/stores/_postgres/units.py": "one round, in SQL and in Python",
    "scheduler/stores/_rows.py": "every row, documented for who writes a store",
    "scheduler/stores/_sharing.py": "a protocol, documented for who writes a store",
    "scheduler/stores/memory.py": "one method for each verb of the protocol",
    "scheduler/stores/postgres.py": "one method for each verb of the protocol",
    "scheduler/stores/sqlite.py": "one method for each verb of the protocol",
    "scheduler/testing/_rules_of_schedulers.py": "rules, one after another",
    "scheduler/testing/_simulate.py": "one world with its clock, and a story of it",
    "timerqueue/_limits/limits.py": "one account: taking, waiting, giving back and reserving decide together",
    "timerqueue/_pool.py": "one class: room, order and ends of work",
    "timerqueue/_workers/workers.py": "one class: workers come, idle and go",
    "uptime_agent/assembly.py": "every part of an agent, made once and connected",
    "uptime_agent/cli.py": "every command and option, with its help",
    "uptime_agent/config/config.py": "every table of the file",
    "uptime_agent/config/place.py": "every key of the store",
    "uptime_agent/config/target.py": "every key of a check",
    "uptime_agent/notify/outbox.py": "one class: what becomes of a message",
    "uptime_agent/postgres/fleet.py": "one class: servers come, change and go",
    "uptime_agent/postgres/storage/writer.py": "one queue between probes and a store that may be away",
    "uptime_agent/standing/reading.py": "one reader for each part of a report",
    "uptime_agent/standing/status.py": "one fold of results into a status",
}
"""Files that may be longer than the others, and why they are not two."""

# Ruff's TID251 refuses the same names; this sees what a `noqa` would hide.
RUFF = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["ruff"]
REFUSED = frozenset(RUFF["lint"]["flake8-tidy-imports"]["banned-api"])
BACKENDS = frozenset({"asyncio", "trio"})
ALLOWED = {"timerqueue/_clock.py": REFUSED, "timerqueue/_workers/tasks.py": BACKENDS, "timerqueue/_wake.py": BACKENDS}


def relative(file):
    """Name a file as the code map does: from below src or from the root."""
    return file.relative_to(SOURCE if file.is_relative_to(SOURCE) else ROOT).as_posix()


@cache
def parsed(file):
    """Parse one file of ours."""
    return ast.parse(file.read_text("utf-8"), filename=str(file))


def functions(tree):
    """Yield every function in a tree, methods and nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def length(function):
    """Count the lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    return lines - (first.end_lineno - first.lineno + 1 if ast.get_docstring(function) else 0)


def imported_names(tree):
    """Map each name that an absolute import binds to what it stands for."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                bound |= {alias.asname: alias.name} if alias.asname else {top: top}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return bound


def qualified(node, bound):
    """Spell out `d.now` as `datetime.datetime.now`, or return None for what no import brought."""
    if isinstance(node, ast.Name):
        return bound.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = qualified(node.value, bound)
        return owner and f"{owner}.{node.attr}"
    return None


def refused_uses(tree, allowed=frozenset()):
    """List what a tree imports or names of the clock, of randomness and of one backend alone."""
    bound = imported_names(tree)
    named = {*bound.values(), *(qualified(node, bound) for node in ast.walk(tree))} - {None}
    return sorted(name for name in named if any(f"{name}.".startswith(f"{refused}.") for refused in REFUSED - allowed))


def test_no_function_is_longer_than_a_screen():
    """A longer one is a pipe of steps that have not been named yet."""
    lengths = {(relative(file), each.name): length(each) for file in FILES for each in functions(parsed(file))}
    assert {where: lines for where, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_no_file_is_long():
    """A longer one answers two questions, or has its reason in the list above."""
    lengths = {relative(file): len(file.read_text("utf-8").splitlines()) for file in FILES}
    longer = {file: length for file, length in lengths.items() if length > LONGEST_FILE}
    assert (sorted(longer), max(longer.values()) <= LONGEST_EXCEPTION) == (sorted(LONGER), True)


def test_only_the_clock_reads_time_and_randomness():
    """Everything else takes a Clock, or else a simulated year would take a year."""
    found = {relative(file): refused_uses(parsed(file), ALLOWED.get(relative(file), frozenset())) for file in FILES}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import time", ["time"]),
        ("from time import monotonic as now", ["time.monotonic"]),
        ("from datetime import datetime\nfield(factory=datetime.now)", ["datetime.datetime.now"]),
        ("import datetime as dt\ndt.datetime.now(dt.UTC)", ["datetime.datetime.now"]),
        ("def f():\n    from random import random", ["random.random"]),
        ("import anyio as a\nasync def f(): await a.sleep(1)", ["anyio.sleep"]),
        ("from datetime import datetime, time\ntime(1); datetime.min", []),
        ("import anyio\nanyio.Event()", []),
        ("def f(time): return time.now", []),
        ("from . import time", []),
    ],
)
def test_the_clock_check_sees_through_aliases(code, found):
    """The check above would be worth nothing if another spelling got past it."""
    assert refused_uses(ast.parse(code)) == found


def test_tests_are_not_packages():
    """`tests/schedule/__init__.py` would be imported in place of the package `schedule`."""
    assert sorted((ROOT / "tests").rglob("__init__.py")) == []


def test_a_folder_of_tests_is_called_after_the_folder_that_they_are_about():
    """`tests/scheduler/runs` is about `src/scheduler/_runs`: who changes the one looks into the other."""
    folders = {file.parent.relative_to(ROOT / "tests") for file in TEST_FILES}
    folders = {folder for folder in folders if folder.parts[0] not in {"parity", "project"}}
    about = {Path(*(part.lstrip("_") for part in file.parent.relative_to(SOURCE).parts)) for file in FILES}
    assert {folder for folder in folders if not {folder, folder.parent} & about} == set()


def test_each_test_file_has_a_name_of_its_own():
    """Without packages two files of one name cannot be told apart in a report."""
    names = [file.name for file in TEST_FILES]
    assert sorted(names) == sorted(set(names))


def test_each_test_says_what_it_is_about():
    """A test's sentence tells the one who breaks it why it is there."""
    tests = [(file, each) for file in TEST_FILES for each in functions(parsed(file)) if each.name.startswith("test_")]
    assert [(relative(file), test.name) for file, test in tests if not ast.get_docstring(test)] == []
