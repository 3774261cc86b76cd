"""On how many processes the tests run: on each core if there are many, on this one if somebody asks for few."""

import os
from types import SimpleNamespace

import execnet
import pytest


@pytest.fixture
def workers(request, monkeypatch):
    """Ask how many workers a call of pytest with these arguments has, on a machine of so many cores."""
    monkeypatch.chdir(request.config.rootpath)

    def workers(*args, cores=2, **of_the_cache):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        option = request.config._parser.parse(args)
        for name in ("lf", "stepwise"):  # without pytest's cache there are no such options
            vars(option).pop(name, None)
        vars(option).update(of_the_cache)
        asked = SimpleNamespace(option=option, args=option.file_or_dir or ["tests"])
        return request.config.hook.pytest_xdist_auto_num_workers(config=asked)

    return workers


@pytest.mark.parametrize("args", ["", "-x", "-q tests/scheduler", "-m slow", "tests/conftest.py tests/project"])
def test_many_tests_use_each_core_and_the_time_in_which_others_wait(workers, args):
    """Whoever has one core waits for more than half of the time, as somebody with two does."""
    assert [workers(*args.split(), cores=cores) for cores in (1, 2, 4)] == [4, 8, 8]


@pytest.mark.parametrize("args", ["tests/conftest.py", "tests/conftest.py::test_a", "-k cron", "-kcron tests"])
def test_few_tests_run_in_this_process(workers, args):
    """A worker imports and collects everything, which takes longer than they do."""
    assert workers(*args.split()) == 0


@pytest.mark.parametrize("option", ["lf", "stepwise"])
def test_what_failed_the_last_time_runs_in_this_process(workers, option):
    """Those are few, or one at a time."""
    assert (workers(**{option: True}), workers(**{option: False})) == (0, 8)


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
