"""Every queue is one: the public suite over this process's own, a fake beanstalkd and a real one."""

import contextlib
import socket
from types import SimpleNamespace

import pytest

import beanstalkd_server
from scheduler.queues import QueueUnavailable
from scheduler.queues._beanstalkd.address import address_of
from scheduler.queues._beanstalkd.connection import LONGEST_WAIT, BeanstalkConnection
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.queues.local import LocalQueue
from scheduler.testing.queues import (
    BeanstalkdConformance,
    BoundedQueueConformance,
    FakeBeanstalkd,
    QueueConformance,
    SharedQueueConformance,
    Turned,
)
from timerqueue import SystemClock
from timerqueue.testing import ManualClock


def say(server, *lines):
    """Say lines to a server on a connection of its own. What it answers to the last."""
    family = socket.AF_UNIX
    with socket.socket(family) as made:
        made.settimeout(60)
        made.connect(server.address.removeprefix("unix:"))
        for line in lines:
            made.sendall(line + b"\r\n")
            answer = made.recv(65_536)
        return answer


class SetClock:
    """A clock of its own beside the fake's: the two can be set apart from each other."""

    def __init__(self, clock):
        self.clock = clock
        self.ahead = 0.0

    def wall(self):
        return self.clock.wall() + self.ahead


class FakeServer(FakeBeanstalkd):
    """A fake that can be troubled as the real one."""

    def __init__(self, path, clock):
        super().__init__(path, clock=SetClock(clock))

    def drain(self):
        self.is_draining = True

    def step(self, seconds):
        self._clock.ahead += seconds
        self.wake()

    @contextlib.contextmanager
    def stopped(self):
        self.stop()
        yield
        self.start()

    def say(self, *lines):
        return say(self, *lines)


class RealServer(beanstalkd_server.BeanstalkdServer):
    """The real one. Its clock is turned together with that of the queues, and can be set apart from it."""

    @contextlib.contextmanager
    def stopped(self):
        self.kill()
        yield
        self.start()

    def say(self, *lines):
        return say(self, *lines)


class OnFake:
    """Queues on a fake server, whose time stands still."""

    @pytest.fixture
    def clock(self):
        return ManualClock()

    @pytest.fixture
    def server(self, tmp_path, clock):
        with FakeServer(tmp_path / "socket", clock) as server:
            yield server

    @pytest.fixture
    def world(self, clock, server):
        def turn(seconds):
            clock.advance(seconds)
            server.wake()

        return Turned(clock, turn)

    @pytest.fixture
    def make_queue(self, server):
        return lambda: BeanstalkdQueue(server.address)


class OnReal:
    """Queues on a real server, whose clock is put forward instead of waiting for it."""

    @pytest.fixture
    def server(self):
        if why := beanstalkd_server.why_not(steps=True):
            pytest.skip(why)
        with RealServer(steps=True) as server:
            yield server

    @pytest.fixture
    def world(self, server):
        turned = SimpleNamespace(by=0.0)
        real = SystemClock()
        clock = SimpleNamespace(wall=lambda: real.wall() + turned.by, monotonic=lambda: real.monotonic() + turned.by)

        def turn(seconds):
            turned.by += seconds
            with contextlib.suppress(OSError):  # it may be stopped
                server.step(seconds)

        return Turned(clock, turn)

    @pytest.fixture
    def make_queue(self, server):
        return lambda: BeanstalkdQueue(server.address)


class ConnectionRules:
    """What a connection does when the stream may be out of step."""

    def test_an_answer_of_a_protocol_error_ends_the_connection(self, server):
        """After a BAD_FORMAT the body is read as a command: one answer too many, which the next would take for its."""
        connection = BeanstalkConnection(address_of(server.address), ["default"])
        found = connection._socket
        assert found.gettimeout() > LONGEST_WAIT, "a socket that gives up before the server answers"
        with pytest.raises(QueueUnavailable, match="BadFormat"):
            connection.ask(lambda client: client.put(b"x", 0, 2**32, 60))
        assert found.fileno() == -1


class TestLocalQueue(QueueConformance):
    """The heap of a process, in the words of a queue."""

    @pytest.fixture
    def world(self, clock):
        return Turned(clock, clock.advance)

    @pytest.fixture
    def make_queue(self):
        return LocalQueue


class BeanstalkdRules(
    ConnectionRules, QueueConformance, SharedQueueConformance, BoundedQueueConformance, BeanstalkdConformance
):
    """All rules of a queue on a beanstalkd."""


class TestQueueOnAFake(OnFake, BeanstalkdRules):
    """A beanstalkd in the test's own process."""


class TestQueueOnBeanstalkd(OnReal, BeanstalkdRules):
    """The real server."""
