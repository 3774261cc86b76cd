"""No test asserts how long something takes: that depends on the machine, and on who else uses it.

What a thing costs is counted: lines (`kit.lines_of`), steps of a pattern, calls, turns of the loop, or how these grow.
What must not hang has a guard, which is generous. Only who is listed here reads a real clock.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

from kit import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "tests").rglob("*.py"))

MODULES = frozenset({"time", "timeit", "anyio", "trio"})
CLOCKS = frozenset(
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time "
    "thread_time_ns current_time timeit default_timer".split()
)
READERS = {
    "tests/kit/kit.py": "guards against what hangs",
    "tests/kit/servers/postgres_server.py": "guards against what hangs",
    "tests/kit/servers/beanstalkd_server.py": "guards against what hangs",
    "tests/lab/crash/crash_check.py": "opens a store, which is told the time",
    "tests/lab/crash/crash_load.py": "notes when a change was asked for, to compare it with what a store has recorded",
    "tests/lab/crash/crash_loop.py": "opens a store, and prints how long it took",
    "tests/lab/fleet/fleet_agent.py": "notes when a run began, and sets its own clock",
    "tests/lab/fleet/fleet_chaos.py": "lasts as long as it is told",
    "tests/lab/outages/fleet_outage_troubles.py": "lasts as long as a trouble, and waits for a grid of the wall clock",
    "tests/kit/servers/server_outages.py": "asks for a connection until one is free",
    "tests/lab/fleet/fleet_members.py": "notes when it troubled an agent, to compare it with what its tasks wrote",
    "tests/lab/soak/blind_soak.py": "lasts as long as it is told, and judges when people were told",
    "tests/lab/beside/beside_agent.py": "compares how late an agent was to how long it had no core",
    "tests/lab/beside/beside_defects.py": "holds a loop up for a time",
    "tests/lab/soak/postgres_fuzz.py": "measures the processor time that the event loop takes in one go",
    "tests/lab/soak/notify_soak.py": "lasts as long as it is told, and notes when it broke a target",
    "tests/lab/fleet/sharing_agent.py": "notes how late a run began",
    "tests/scheduler/stores/deaths/test_clocks_that_are_off.py": "sets a clock, and sees that nothing begins too early",
    "tests/scheduler/stores/deaths/test_units_of_processes.py": "waits for a lease to end",
    "tests/lab/units/units_processes.py": "notes when a process died",
    "tests/lab/units/units_agent.py": "notes when a run began, on a clock that all processes have",
    "tests/lab/soak/soak_targets.py": "notes when it broke and mended a target",
    "tests/uptime_agent/hostile/test_agent_config_growth.py": "compares the CPU of a text to that of a longer one",
    "tests/uptime_agent/lives/test_agent_restart.py": "sees that what is due lies no hour in the past",
    "tests/scheduler/stores/conftest.py": "opens a store, which is told the time",
    "tests/scheduler/stores/crashing_agent.py": "notes when a run began",
    "tests/scheduler/stores/postgres/test_proxy.py": "sees that nothing comes before its delay is over",
    "tests/scheduler/stores/faults/test_kill_points.py": "sees that nothing begins too early",
    "tests/scheduler/test_bad_input.py": "hands one over as a clock of the wrong kind",
    "tests/timerqueue/test_clock.py": "compares our clock to the machine's",
    "tests/timerqueue/test_wake.py": "sees that no wait ends too early",
}
"""Each with its reason. None asserts that something took no longer than so long."""

FIRST_IS_LIMIT = frozenset({"fail_after", "join", "wait", "result"})
"""Calls whose first argument, if it is a number, says after how many seconds they give up."""
TAKES_TIMEOUT = FIRST_IS_LIMIT | {"acquire", "communicate", "run", "check_output", "get"}
"""Calls that may be given a `timeout` in seconds. (That of a job is another matter: those are seconds of its clock.)"""


@cache
def parsed(file):
    """Parse a file of the tests."""
    return ast.parse(file.read_text("utf-8"), filename=str(file))


def relative(file):
    """Name a file from the root on."""
    return file.relative_to(ROOT).as_posix()


def clocks_read(tree):
    """List the real clocks that a file names, by whatever name it has imported them."""
    modules, found = {}, []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                modules |= {each.asname or each.name: each.name for each in node.names if each.name in MODULES}
            case ast.ImportFrom() if node.module in MODULES:
                found += [f"{node.module}.{each.name}" for each in node.names if each.name in CLOCKS]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(module), name) if module in modules and name in CLOCKS:
                found.append(f"{modules[module]}.{name}")
    return found


def constants(tree):
    """Map the names of a file's own constants to their values."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def limits(tree):
    """Yield what says after how many seconds a call gives up."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Attribute(attr=name) | ast.Name(name), args, keywords):
                yield from args[:1] if name in FIRST_IS_LIMIT else ()
                yield from (each.value for each in keywords if name in TAKES_TIMEOUT and each.arg == "timeout")


def tight_guards(tree):
    """List (line, seconds) of the guards against hanging that a busy machine may run into."""
    values, found = constants(tree), []
    for limit in limits(tree):
        seconds = values.get(limit.id) if isinstance(limit, ast.Name) else getattr(limit, "value", None)
        if type(seconds) in {int, float} and seconds < PATIENCE:
            found.append((limit.lineno, seconds))
    return found


def test_only_who_has_a_reason_reads_a_real_clock():
    """Whoever takes the time asserts it one day, and that day the machine is busy."""
    found = {relative(file): clocks_read(parsed(file)) for file in FILES if relative(file) not in READERS}
    assert {file: clocks for file, clocks in found.items() if clocks} == {}


def test_each_reader_of_a_clock_reads_one():
    """Or its line is old."""
    assert [name for name in READERS if not clocks_read(parsed(ROOT / name))] == []


def test_guards_against_hanging_are_generous():
    """They say that something has ended at all: `kit.PATIENCE` or more."""
    found = {relative(file): tight_guards(parsed(file)) for file in FILES}
    assert {file: guards for file, guards in found.items() if guards} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import time\nbegan = time.monotonic()", ["time.monotonic"]),
        ("import time as t\ntake = t.perf_counter", ["time.perf_counter"]),
        ("from time import thread_time as now", ["time.thread_time"]),
        ("def f():\n    import anyio\n    anyio.current_time()", ["anyio.current_time"]),
        ("import timeit\ntimeit.timeit(f)", ["timeit.timeit"]),
        ("import time\ntime.sleep(0)", []),
        ("clock.monotonic()", []),
    ],
)
def test_a_clock_is_seen_under_any_name(code, found):
    """The check above would be worth nothing if another spelling got past it."""
    assert clocks_read(ast.parse(code)) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("with anyio.fail_after(5): pass", [5]),
        ("SOON = 9.0\nthread.join(SOON)", [9.0]),
        ("subprocess.run(command, timeout=30)", [30]),
        ("lock.acquire(timeout=1)", [1]),
        ("anyio.fail_after(60)", []),
        ("from kit import PATIENCE\nthread.join(PATIENCE)", []),
        ("s.add(task, timeout=5)", []),
        ("thread.join(); ','.join(words); process.wait()", []),
    ],
)
def test_a_tight_guard_is_seen(code, found):
    """Positional or by name, as a number or as the name of one."""
    assert [seconds for _, seconds in tight_guards(ast.parse(code))] == found
