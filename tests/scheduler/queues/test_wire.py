"""The stream to a beanstalkd: many commands go in one send, and each answer is read for its command or not at all."""

import socket

import pytest

from scheduler.queues._beanstalkd.wire import AT_ONCE, BeanstalkWire, Reply, StrangeAnswer


@pytest.fixture
def ends():
    """Both ends of a stream: ours, and the server's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Counted:
    """A socket that counts what is sent."""

    def __init__(self, made):
        self.made = made
        self.sends = 0

    def sendall(self, data):
        self.sends += 1
        self.made.sendall(data)

    def makefile(self, mode):
        return self.made.makefile(mode)


def test_a_thousand_commands_take_ten_sends(ends):
    """A system call costs what ten commands cost, here and there."""
    ours, theirs = ends
    counted = Counted(ours)
    theirs.sendall(b"".join(b"INSERTED %d\r\n" % number for number in range(1_000)))
    answers = list(BeanstalkWire(counted).exchange([b"put\r\n"] * 1_000))
    assert answers == [Reply(b"INSERTED", number) for number in range(1_000)]
    assert counted.sends == 1_000 / AT_ONCE


def test_a_body_is_read_by_its_length(ends):
    """Whatever stands in it; and what follows it is the next answer."""
    ours, theirs = ends
    theirs.sendall(b"RESERVED 7 12\r\nNOT_FOUND\r\nx\r\nNOT_FOUND\r\nOK 2\r\nab\r\nTIMED_OUT\r\n")
    assert list(BeanstalkWire(ours).exchange([b"\r\n"] * 4)) == [
        Reply(b"RESERVED", 7, b"NOT_FOUND\r\nx"),
        Reply(b"NOT_FOUND"),
        Reply(b"OK", 2, b"ab"),
        Reply(b"TIMED_OUT"),
    ]


@pytest.mark.parametrize(
    "answer", [b"BAD_FORMAT\r\n", b"INTERNAL_ERROR\r\n", b"what?\r\n", b"\r\n", b"RESERVED x 1\r\n", b"RESERVED\r\n"]
)
def test_an_answer_that_no_command_has_ends_the_exchange(ends, answer):
    """What comes after it may be anything."""
    ours, theirs = ends
    theirs.sendall(b"DELETED\r\n" + answer + b"DELETED\r\n")
    answers = BeanstalkWire(ours).exchange([b"delete 1\r\n"] * 3)
    assert next(answers) == Reply(b"DELETED")
    with pytest.raises((StrangeAnswer, ValueError)):
        next(answers)


@pytest.mark.parametrize("answer", [b"", b"DELET", b"RESERVED 1 10\r\nabc", b"RESERVED 1 10\r\nabcdefghij"])
def test_a_stream_that_ends_within_an_answer_is_an_error(ends, answer):
    """Half of an answer tells nothing."""
    ours, theirs = ends
    theirs.sendall(answer)
    theirs.close()
    with pytest.raises((ConnectionError, StrangeAnswer)):
        next(BeanstalkWire(ours).exchange([b"reserve\r\n"]))
