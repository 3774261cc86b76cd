"""The beanstalkd that tests start (beanstalkd_server.py): it keeps a log or none, and its clock can be set."""

import pytest

import beanstalkd_server
from faked_clock import left_by


@pytest.fixture
def real():
    """Return the server's class, where there is one."""
    if why := beanstalkd_server.why_not(steps=True):
        pytest.skip(why)
    return beanstalkd_server.BeanstalkdServer


PUT = b"put 1 %d 60 3\r\nabc"
READY = b"peek-ready"


@pytest.mark.parametrize("log", [True, False])
def test_a_beanstalkd_remembers_if_it_has_a_log(real, log):
    """Over a kill; unless it is told to forget."""
    with real(log=log) as server:
        assert server.ask(PUT % 0) == b"INSERTED 1\r\n"
        server.restart()
        assert server.ask(READY).startswith(b"FOUND 1 3" if log else b"NOT_FOUND")
        server.restart(log=False)
        assert server.ask(READY) == b"NOT_FOUND\r\n"


def test_the_clock_of_a_beanstalkd_can_be_set(real):
    """What was put for an hour later is ready once the clock has been set on by two."""
    with real(steps=True) as server:
        assert server.ask(PUT % 3600) == b"INSERTED 1\r\n"
        assert server.ask(READY) == b"NOT_FOUND\r\n"
        server.step(2 * 3600)
        assert server.ask(READY).startswith(b"FOUND 1 3")


def test_a_beanstalkd_with_a_clock_that_is_killed_leaves_nothing_in_memory(real):
    """A semaphore with the id of its process remained, and a process that was given that id again could not start."""
    with real(steps=True) as server:
        pids = [server.pid]
        server.restart()
        pids.append(server.pid)
        assert server.ask(PUT % 0).startswith(b"INSERTED ")
    assert [left_by(pid) for pid in pids] == [[], []]
