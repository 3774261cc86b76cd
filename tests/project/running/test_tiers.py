"""What `dev.py test` runs and what it leaves to `--all`: nothing is left out without a word."""

from types import SimpleNamespace

import pytest

import tiers

TESTS = tiers.TESTS


def collected(path, backend=None, *, slow=False, fixtures=()):
    """Stand in for a collected test of that file."""
    marks = {"slow": True} if slow else {}
    params = SimpleNamespace(params={"anyio_backend": backend} if backend else {})
    return SimpleNamespace(path=TESTS / path, get_closest_marker=marks.get, callspec=params, fixturenames=fixtures)


def test_slow_tests_and_the_second_backend_are_left_to_all(monkeypatch):
    """But for the second backend where it decides something. The line says how many there are of each."""
    monkeypatch.delenv("BACKENDS", raising=False)
    runs = [
        collected("schedule/test_every.py"),
        collected("schedule/a.py", "asyncio"),
        collected("timerqueue/a.py", "trio"),
    ]
    left = [
        collected("schedule/a.py", "trio"),
        collected("timerqueue/b.py", "trio", slow=True),
        collected("a.py", slow=True),
    ]
    kept, left_out, counts = tiers.split([*left, *runs])
    assert (kept, left_out) == (runs, left)
    assert tiers.told(counts) == (
        "left to `python3 dev.py test --all`: 2 slow tests, 1 on trio where the backend decides nothing, "
        "4 of 5 examples of each property"
    )


def test_what_a_command_does_depends_on_no_backend_of_the_test(monkeypatch):
    """It is a program with a loop of its own."""
    monkeypatch.delenv("BACKENDS", raising=False)
    items = [collected("timerqueue/a.py", "trio", fixtures=["ran", "config"]), collected("timerqueue/a.py", "trio")]
    assert tiers.split(items)[0] == items[1:]


def test_backends_that_are_asked_for_are_all_run(monkeypatch):
    """`BACKENDS=trio` has each async test run on trio."""
    monkeypatch.setenv("BACKENDS", "trio")
    assert tiers.split([collected("schedule/a.py", "trio")])[1] == []


def test_each_place_where_the_backend_matters_is_there():
    """Or its line is old, and its tests have lost a backend."""
    assert [each for each in tiers.BACKEND_MATTERS if not (TESTS / each).exists()] == []


@pytest.mark.parametrize("named", [{"keyword": "cron"}, {"markexpr": "slow"}, {"lf": True}, {"stepwise": True}])
def test_tests_that_are_named_run_whole(named):
    """Who asks for tests by file, word or mark gets them on every backend, with every example."""
    nothing = {"keyword": "", "markexpr": ""}
    assert tiers.are_named(SimpleNamespace(**nothing | named), [str(TESTS)])
    assert tiers.are_named(SimpleNamespace(**nothing), [__file__])
    assert not tiers.are_named(SimpleNamespace(**nothing), [str(TESTS)])


def test_what_this_machine_lacks_is_told_in_one_line():
    """A person sees how many tests have not run, and the command that has them run the next time."""
    reasons = ["no beanstalkd on this machine: apt-get install beanstalkd"] * 2
    reasons += ["needs the program openssl: apt-get install openssl", "needs IPv6"]
    assert tiers.missing(reasons) == "left out here: 3 tests, for want of: apt-get install beanstalkd openssl"
    assert tiers.missing(["needs IPv6"]) == ""
