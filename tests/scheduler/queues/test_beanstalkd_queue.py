"""What a BeanstalkdQueue is made of: addresses, names, bounds, bodies; and a server that says nothing."""

import json
import logging
import socket
from types import SimpleNamespace

import greenstalk
import pytest
from hypothesis import given, strategies as st

from kit import wait_until
from scheduler.queues import Kind, QueueError, QueueUnavailable, Reason, Tick, delay_of
from scheduler.queues._beanstalkd import commander, connection
from scheduler.queues._beanstalkd.address import Address, address_of
from scheduler.queues._beanstalkd.body import Later, decode, encode
from scheduler.queues.beanstalkd import BeanstalkdQueue
from scheduler.testing.queues import FakeBeanstalkd, OpenQueue, Turned
from timerqueue import SystemClock
from timerqueue.testing import ManualClock

KINDS = st.sampled_from(Kind)
VALUES = st.recursive(st.none() | st.integers() | st.text(), st.lists)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("broker", Address(host="broker")),
        ("broker:11301", Address(host="broker", port=11_301)),
        ("127.0.0.1", Address(host="127.0.0.1")),
        ("[::1]", Address(host="::1")),
        ("[::1]:11301", Address(host="::1", port=11_301)),
        ("/run/beanstalkd", Address(path="/run/beanstalkd")),
        ("unix:/run/beanstalkd", Address(path="/run/beanstalkd")),
    ],
)
def test_an_address_is_read_as_it_is_written_everywhere(text, address):
    """A host, a port if it is not the usual one, or a path."""
    assert address_of(text) == address
    assert address_of(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", ":1", "broker:", "broker:x", "broker:0", "broker:65536", "a:b:1", "::1", "[::1", "[]:1", "[::1]x"]
)
def test_what_is_no_address_is_an_error_that_shows_it(text):
    """And says what one looks like."""
    if text == "broker:":  # as a browser reads it: the usual port
        assert address_of(text) == Address(host="broker")
        return
    with pytest.raises(QueueError, match="host:port"):
        BeanstalkdQueue(text)


@pytest.mark.parametrize("tube", ["", "-a", "a b", "ü", "x" * 200])
def test_what_is_no_name_of_a_tube_is_an_error(tube):
    """The server would answer BAD_FORMAT, and the connection be out of step."""
    with pytest.raises(QueueError, match="tube"):
        BeanstalkdQueue("broker", tube=tube)


@pytest.mark.parametrize(
    "options", [{"ttr": 2}, {"ttr": 2**32}, {"ttr": 30.0}, {"reservers": -1}, {"window": 0}, {"window": True}]
)
def test_a_number_out_of_bounds_is_an_error_that_names_it(options):
    """Whole seconds, up to what a server can count; and the connection needs time to touch."""
    with pytest.raises(QueueError, match=next(iter(options))):
        BeanstalkdQueue("broker", **options)


@given(st.text(), NUMBERS, KINDS, st.integers(0))
def test_a_tick_is_read_as_it_was_written(job_id, due_us, kind, generation):
    """Whatever its job is called. The same tick has the same bytes."""
    tick = Tick(job_id, due_us, kind, generation)
    assert decode(encode(tick)) == tick
    assert encode(tick).isascii()


@given(st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_what_is_no_tick_is_not_read_as_one(body):
    """Somebody else's job in our tube raises nothing."""
    assert not isinstance(decode(body), Tick)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"v":2}', Later()),
        (b'{"v":0}', None),
        (b'{"v":"2"}', None),
        (b'{"v":1,"kind":"run","job":1,"due":1,"gen":0}', None),
        (b'{"v":1,"kind":"run","job":"a","due":1.5,"gen":0}', None),
        (b'{"v":1,"kind":"run","job":"a","due":true,"gen":0}', None),
        (b'{"v":1,"kind":"what","job":"a","due":1,"gen":0}', None),
        (b"[" * 100_000, None),
    ],
)
def test_a_body_with_a_field_too_strange_is_not_read(body, found):
    """A later version's is told apart, for somebody who can read it may be there."""
    assert decode(body) == found


@given(NUMBERS, NUMBERS)
def test_a_tick_waits_elsewhere_for_whole_seconds_and_comes_out_in_time(due_us, now_us):
    """Never later than its due instant, never more than about a second before, and within what a server counts."""
    delay = delay_of(due_us, now_us, 2**32 - 1)
    assert 0 <= delay < 2**32
    if delay:
        assert now_us + delay * 1_000_000 <= due_us - 100_000
    if delay < 2**32 - 1:
        assert due_us - (now_us + delay * 1_000_000) < 1_100_000


class Silent:
    """A server that takes connections and says nothing."""

    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def test_a_server_that_says_nothing_counts_as_gone(tmp_path, monkeypatch):
    """The bound of each answer is above the longest wait that a server is asked for; no thread waits for ever."""
    monkeypatch.setattr(connection, "PATIENCE", 0.1)
    with Silent(tmp_path / "socket"), pytest.raises(QueueUnavailable, match="timed out"):
        connection.BeanstalkConnection(Address(path=str(tmp_path / "socket")), ["default"], wait=0.1)


def test_a_server_that_could_not_be_reached_is_left_alone_for_a_while(tmp_path, monkeypatch):
    """A thousand ticks cost one attempt to connect, not a thousand times its patience."""
    attempts = []
    monkeypatch.setattr(commander, "BeanstalkConnection", lambda *a: attempts.append(a) or fail())

    def fail():
        msg = "nobody there"
        raise QueueUnavailable(msg)

    clock = SimpleNamespace(wall=lambda: 0.0, monotonic=lambda: 0.0)
    queue = BeanstalkdQueue(str(tmp_path / "socket"))
    queue.open(clock, lambda *a: None, lambda deliveries: None)
    try:
        assert queue.put([Tick(str(n), 10**15) for n in range(1_000)]) == [None] * 1_000
    finally:
        queue.close()
    assert len(attempts) == 1
    assert queue.statistics().here == {Reason.UNREACHABLE: 1_000}


def test_a_server_that_is_full_has_ticks_wait_here(tmp_path):
    """OUT_OF_MEMORY is what it says of its memory and of the disk that its log is on."""
    clock = SystemClock()
    with FakeBeanstalkd(tmp_path / "socket") as server:
        server.is_full = True
        queue = BeanstalkdQueue(server.address)
        opened = OpenQueue(queue, Turned(clock, lambda seconds: None))
        try:
            tick = Tick("a", int((clock.wall() - 1) * 1e6))
            assert queue.put([tick]) == [None]
            assert queue.statistics().here == {Reason.OUT_OF_MEMORY: 1}
            assert [delivery.tick for delivery in opened.wait_for(1)] == [tick]
        finally:
            queue.close()


def test_an_instance_is_a_text_though_its_digits_have_no_letter(tmp_path):
    """It is written into a column of texts."""
    with FakeBeanstalkd(tmp_path / "socket") as server:
        queue = BeanstalkdQueue(server.address)
        OpenQueue(queue, Turned(SystemClock(), lambda seconds: None))
        try:
            (place,) = queue.put([Tick("a", int((SystemClock().wall() + 60) * 1e6))])
            assert isinstance(place.instance, str)
            assert queue.instance() == place.instance
        finally:
            queue.close()


def test_a_taker_that_holds_enough_takes_no_more(tmp_path):
    """What a machine cannot run yet is left for others."""
    with FakeBeanstalkd(tmp_path / "socket") as server:
        queue = BeanstalkdQueue(server.address, window=3)
        opened = OpenQueue(queue, Turned(SystemClock(), lambda seconds: None))
        try:
            queue.put([Tick(str(n), 0) for n in range(5)])
            opened.wait_for(3)
            wait_until(lambda: queue.census(Kind.RUN).ready == 2)
            assert len(opened.come_out) == 3
            opened.come_out[0].done()
            opened.wait_for(4)
        finally:
            queue.close()


def test_ticks_that_were_held_for_too_long_are_told_together(tmp_path, caplog):
    """A process that was stopped for a minute may have held thousands: one line says how many, and each is counted."""
    caplog.set_level(logging.INFO, "scheduler.queues")
    clock = ManualClock()
    with FakeBeanstalkd(tmp_path / "socket", clock=clock) as server:
        queue = BeanstalkdQueue(server.address)
        opened = OpenQueue(queue, Turned(clock, clock.advance))
        try:
            queue.put([Tick(str(n), 0) for n in range(50)])
            opened.wait_for(50)
            server.jobs.by_number.clear()
            clock.advance(30)
            wait_until(lambda: queue.statistics().expired == 50)
        finally:
            queue.close()
    (told,) = [each for each in caplog.messages if "time to run" in each]
    assert "the time to run of 50 ticks was over" in told


def test_jobs_of_others_are_one_warning_a_minute(tmp_path, caplog):
    """Whoever kicks buried jobs brings thousands out again: each was a line in the log."""
    caplog.set_level(logging.WARNING, "scheduler")
    clock = ManualClock()
    with FakeBeanstalkd(tmp_path / "socket", clock=clock) as server:
        queue = BeanstalkdQueue(server.address)
        OpenQueue(queue, Turned(clock, clock.advance))
        try:
            put_by_others(server, 1)
            wait_until(lambda: told_of_strangers(caplog) == [1])
            put_by_others(server, 49)
            wait_until(lambda: queue.statistics().strange == 50)
            assert told_of_strangers(caplog) == [1]
            clock.advance(60)
            put_by_others(server, 1)
            wait_until(lambda: len(told_of_strangers(caplog)) > 1)
        finally:
            queue.close()
    assert told_of_strangers(caplog)[1] in {49, 50}  # the last one is told with them, or a minute later


def put_by_others(server, count):
    """Put so many jobs of another program into our tube."""
    with greenstalk.Client(server.address.removeprefix("unix:"), use="timerqueue") as client:
        for _ in range(count):
            client.put("hello")


def told_of_strangers(caplog):
    """List the warnings, by how many jobs each tells of."""
    return [each.args[1] for each in caplog.records if "no ticks of ours" in each.getMessage()]


def test_a_queue_is_opened_once(tmp_path):
    """Two schedulers on one object would take each other's ticks."""
    with FakeBeanstalkd(tmp_path / "socket") as server:
        queue = BeanstalkdQueue(server.address)
        queue.open(SystemClock(), lambda *a: None, lambda deliveries: None)
        with pytest.raises(QueueError, match="a queue of its own"):
            queue.open(SystemClock(), lambda *a: None, lambda deliveries: None)
        queue.close()
        queue.close()
