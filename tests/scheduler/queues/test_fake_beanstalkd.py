"""The fake beanstalkd answers as the real one does: dialogues on both, and what clients of others ask of either."""

import socket

import greenstalk
import pytest

import beanstalkd_server
from kit import PATIENCE
from scheduler.testing.queues import FakeBeanstalkd

DEFAULT = b"default"


@pytest.fixture
def fake(tmp_path):
    """Start a fake."""
    with FakeBeanstalkd(tmp_path / "fake") as server:
        yield server


@pytest.fixture
def real():
    """Start a real one."""
    if why := beanstalkd_server.why_not():
        pytest.skip(why)
    with beanstalkd_server.BeanstalkdServer(log=False) as server:
        yield server


@pytest.fixture(params=["fake", "real"])
def server(request):
    """Start each of them."""
    return request.getfixturevalue(request.param)


def path_of(server):
    return server.address.removeprefix("unix:")


@pytest.fixture
def client(server):
    """Connect to it as users of greenstalk do."""
    with greenstalk.Client(path_of(server)) as client:
        yield client


class Talk:
    """A connection, and what is said on it."""

    def __init__(self, server):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(path_of(server))
        self._file = self._socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()

    def say(self, *lines):
        """Say lines, and return the line that is answered to the last, with the data behind it."""
        self._socket.sendall(b"".join(line + b"\r\n" for line in lines))
        answer = self._file.readline()
        word, *numbers = answer.split()
        if word in {b"OK", b"RESERVED", b"FOUND"}:
            answer += self._file.read(int(numbers[-1]) + 2)
        return answer

    def keys(self, *lines):
        """Return the names in what is answered, in their order."""
        return [line.partition(b":")[0] for line in self.say(*lines).splitlines()[2:]]


PUT = (b"put 5 0 60 1", b"x")
DIALOGUES = {
    "a tube with a job": [PUT, (b"stats-tube default",)],
    "a tube that is paused": [(b"pause-tube default 100",), (b"reserve-with-timeout 0",), (b"stats-job 1",)],
    "a job that is deleted": [PUT, (b"reserve",), (b"delete 1",), (b"stats-tube default",)],
    "a tube that is used": [(b"use a",), (b"stats-tube a",), (b"stats-tube default",)],
    "a tube that is watched": [(b"watch a",), (b"ignore default",), (b"stats-tube default",), (b"stats-tube a",)],
    "a tube that nobody has": [(b"stats-tube a",), (b"pause-tube a 1",)],
    "a name with letters of others": [("use \u00fc".encode(),), ("watch \u00fc".encode(),), (b"stats-tube \xff",)],
    "names that are none": [(b"use -a",), (b"use a b",), (b"use " + 201 * b"a",), (b"use a\x00b",), (b"use a*b",)],
    "names that are one": [(b"use a-b+c/d;e.f$g_h(i)",), (b"use " + 200 * b"a",)],
    "a job that is buried and kicked": [PUT, (b"reserve",), (b"bury 1 7",), (b"stats-tube default",), (b"kick 1",)],
    "a job that is released": [PUT, (b"reserve",), (b"release 1 2 100",), (b"stats-job 1",), (b"peek-delayed",)],
    "a job of somebody else": [(b"touch 9",), (b"release 9 0 0",), (b"bury 9 0",), (b"delete 9",), (b"kick-job 9",)],
}


@pytest.mark.parametrize("lines", DIALOGUES.values(), ids=DIALOGUES)
def test_a_dialogue_is_the_same(fake, real, lines):
    """Answer for answer, numbers and all."""
    with Talk(fake) as one, Talk(real) as other:
        assert [one.say(*each) for each in lines] == [other.say(*each) for each in lines]


@pytest.mark.parametrize("command", [b"stats", b"stats-tube default"])
def test_statistics_have_the_same_names(fake, real, command):
    """A program that reads one of them finds it in either."""
    with Talk(fake) as one, Talk(real) as other:
        assert one.keys(command) == other.keys(command)


def test_who_waits_is_warned_before_the_time_of_a_job_is_over(client):
    """A second before: it may touch the job then. The fake gave it out again instead."""
    client.put("two seconds", ttr=2)
    job = client.reserve()
    for _ in range(2):
        with pytest.raises(greenstalk.DeadlineSoonError):
            client.reserve(timeout=10)
        client.touch(job)
    assert client.stats_job(job)["timeouts"] == 0


def test_a_tube_tells_what_there_was(client):
    """As greenstalk's and pystalk's own suites ask: all keys, and totals that count."""
    assert client.stats_tube("default") == dict.fromkeys(client.stats_tube("default"), 0) | {
        "name": "default",
        "current-using": 1,
        "current-watching": 1,
    }
    client.delete(client.put("a"))
    client.pause_tube("default", 100)
    told = client.stats_tube("default")
    assert (told["total-jobs"], told["cmd-delete"], told["cmd-pause-tube"], told["pause"]) == (1, 1, 1, 100)


def test_a_server_tells_what_there_was(client):
    """Counts of commands, of connections and of jobs."""
    client.put("a")
    client.reserve()
    told = client.stats()
    names = ("cmd-put", "cmd-reserve", "current-producers", "current-workers", "total-jobs")
    assert [told[name] for name in names] == [1] * 5
    assert told["uptime"] < PATIENCE
