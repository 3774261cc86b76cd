"""On how many processes the tests run, several or this one; in which order; and where they write."""

import os
import subprocess
import sys
import tempfile
from types import SimpleNamespace

import execnet
import pytest

import in_memory
from dealt import dealt


@pytest.fixture
def workers(request, monkeypatch):
    """Ask how many workers a call of pytest with these arguments has, on a machine of so many cores."""
    monkeypatch.chdir(request.config.rootpath)

    def workers(*args, cores=2, everything=False, **of_the_cache):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        monkeypatch.setenv("TESTS", "all" if everything else "")
        option = request.config._parser.parse(args)
        for name in ("lf", "stepwise"):  # without pytest's cache there are no such options
            vars(option).pop(name, None)
        vars(option).update(of_the_cache)
        asked = SimpleNamespace(option=option, args=option.file_or_dir or ["tests"])
        return request.config.hook.pytest_xdist_auto_num_workers(config=asked)

    return workers


@pytest.mark.parametrize("args", ["", "-x", "-q tests/scheduler", "-m slow", "tests/conftest.py tests/project"])
def test_many_tests_use_the_time_in_which_others_wait(workers, args):
    """A test waits for servers and processes more than half of the time."""
    assert [workers(*args.split(), cores=cores) for cores in (1, 2, 4, 16)] == [2, 4, 8, 8]


def test_all_tests_have_as_many_workers(workers):
    """With `--all` there are more tests, and no more of them at a time."""
    assert [workers(cores=cores, everything=True) for cores in (1, 2, 4)] == [2, 4, 8]


@pytest.mark.parametrize("args", ["tests/conftest.py", "tests/conftest.py::test_a", "-k cron", "-kcron tests"])
def test_few_tests_run_in_this_process(workers, args):
    """A worker imports and collects everything, which takes longer than they do."""
    assert workers(*args.split()) == 0


@pytest.mark.parametrize("option", ["lf", "stepwise"])
def test_what_failed_the_last_time_runs_in_this_process(workers, option):
    """Those are few, or one at a time."""
    assert (workers(**{option: True}), workers(**{option: False})) == (0, 4)


@pytest.mark.parametrize("args", ["-s", "--capture=no tests", "--pdb"])
def test_what_somebody_watches_runs_in_this_process(workers, args):
    """The output of a worker is not seen, and no debugger can be reached in it."""
    assert workers(*args.split()) == 0


def test_a_hundred_workers_do_not_help(workers):
    """Each collects all tests and may start a PostgreSQL of its own."""
    assert workers(cores=100) == 8


def test_a_worker_can_report_whatever_a_test_logs(request):
    """A lone surrogate in a log ended the whole run, and the tests after it ran nowhere."""
    report = pytest.TestReport("id", ("file", 1, "test"), {}, "passed", None, "call", [("Captured log", "a \ud800 b")])
    told = request.config.hook.pytest_report_to_serializable(config=request.config, report=report)
    execnet.dumps(told)
    assert told["sections"] == [("Captured log", r"a \ud800 b")]


def parts(tests, workers):
    """Deal tests that are called file, number and, if they are slow, S; return the parts that xdist makes of them."""
    order = dealt(tests, workers, is_slow=lambda name: "S" in name, file_of=lambda name: name[0])
    assert sorted(order) == sorted(tests)
    found = []
    for left in range(workers, 0, -1):
        found.append(order[: len(order) // left])
        del order[: len(order) // left]
    return [" ".join(each) for each in found]


def test_each_worker_begins_with_its_share_of_what_takes_long():
    """All else stays as it was, and the slow tests of a file stay together."""
    tests = "a1 a2S a3S a4 b1 b2 b3 b4 b5S c1 c2S c3 d1 d2 d3 d4".split()
    assert parts(tests, 2) == ["a2S a3S c2S a1 a4 b1 b2 b3", "b5S b4 c1 c3 d1 d2 d3 d4"]
    assert parts(tests, 1) == ["a2S a3S b5S c2S a1 a4 b1 b2 b3 b4 c1 c3 d1 d2 d3 d4"]


@pytest.mark.parametrize("tests", ["", "a1", "a1S", "a1S a2S a3S a4S a5S b1", "a1 b1S c1S d1S e1S f1S"])
def test_no_test_is_lost_when_they_are_dealt(tests):
    """Be there fewer of them than workers, or more slow ones than make a part."""
    assert sorted(" ".join(parts(tests.split(), 4)).split()) == tests.split()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Have a machine with so many bytes of memory free, in a folder of this test; return what TMPDIR is then."""

    def machine(free, **variables):
        monkeypatch.setattr(in_memory, "MEMORY", tmp_path)
        monkeypatch.setattr(in_memory, "_free", lambda _: free)
        monkeypatch.setattr(in_memory, "_available", lambda: free)
        monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())
        monkeypatch.delenv("TMPDIR", raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        in_memory.lie_in_memory()
        return os.environ.get("TMPDIR")

    return machine


def test_tests_write_into_memory_if_there_is_room(machine, tmp_path):
    """This process too, which has looked for its folder already."""
    assert machine(in_memory.ROOM) == tempfile.gettempdir() == str(tmp_path)


def test_they_write_elsewhere_if_there_is_no_room_or_somebody_has_said_where(machine):
    """A container may have 64 MB of it."""
    assert machine(in_memory.ROOM - 1) is None
    assert machine(in_memory.ROOM, TMPDIR="/elsewhere") == "/elsewhere"


def test_they_write_where_what_they_write_can_be_run():
    """Some tests start programs that they have made."""
    with tempfile.TemporaryDirectory() as folder:
        assert in_memory._may_run_programs(folder) == can_run(folder)


def can_run(folder):
    """Tell whether a copy of a program can be run there."""
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as program:
        program.write(f"#!{sys.executable}\n")
    os.chmod(program.name, 0o700)  # noqa: PTH101
    try:
        return subprocess.run([program.name], check=False).returncode == 0
    except PermissionError:
        return False
