"""A real beanstalkd for tests and benchmarks: on a Unix socket in a temporary folder, so that no port is taken.

With `steps=True` it runs under libfaketime, and its clock, which is the wall clock, can be set while it runs. Each
server is the child of the process that started it, and ends with the block that it was started for.
"""

import contextlib
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from faked_clock import FAKETIME, faked, unshare

PATIENCE = 60.0
PROGRAM = shutil.which("beanstalkd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")


def why_not(*, steps=False):
    """Say why there can be no server here, or nothing."""
    if PROGRAM is None:
        return "no beanstalkd on this machine: apt-get install beanstalkd"
    if steps and FAKETIME is None:
        return "no libfaketime on this machine: apt-get install faketime"
    return ""


class BeanstalkdServer:
    """A server and the handles to trouble it. `address` is where it is, for a BeanstalkdQueue.

    `log`: whether it keeps a log of its jobs, which a restart reads. `options` are given to it.
    """

    def __init__(self, *, log=True, steps=False, options=()):
        assert not why_not(steps=steps), why_not(steps=steps)
        self.folder = Path(tempfile.mkdtemp(prefix="timerqueue-beanstalkd-"))
        self.path = self.folder / "socket"
        self.address = f"unix:{self.path}"
        self.is_logging = log
        self.offset = 0.0
        self._options = options
        self._clock = self.folder / "clock" if steps else None
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self._process.pid

    def start(self):
        """Start it and wait until it answers."""
        self.path.unlink(missing_ok=True)
        log = self.folder / "log"
        log.mkdir(exist_ok=True)
        kept = ["-b", str(log)] if self.is_logging else []
        with (self.folder / "errors").open("ab") as errors:
            self._process = subprocess.Popen(
                [PROGRAM, "-l", self.address, *kept, *self._options],
                env=os.environ | self._faked(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                restore_signals=False,  # a file that may not grow is an error for it, and no end
            )
        until(self._answers, "beanstalkd starts")
        if self._clock is not None:
            unshare(self.pid)

    def kill(self):
        """End it as `kill -9` does."""
        self._process.send_signal(signal.SIGCONT)
        self._process.kill()
        self._process.wait(PATIENCE)

    def restart(self, *, log=True):
        """Kill and start it, with what its log has kept, or with nothing."""
        self.kill()
        if not log:
            shutil.rmtree(self.folder / "log")
        self.start()

    def drain(self):
        """Have it take no more jobs, for good."""
        self._process.send_signal(signal.SIGUSR1)
        until(lambda: b"draining: true" in self.ask(b"stats"), "beanstalkd drains")

    @contextlib.contextmanager
    def frozen(self):
        """The server stands still for as long as the block lasts."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @contextlib.contextmanager
    def full(self):
        """The disk has no room for another file of its log, for as long as the block lasts. It was started with `-s`,
        the size of these files.
        """
        size = int(self._options[self._options.index("-s") + 1])
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size - 1, resource.RLIM_INFINITY))
        for length in (20_000, 2_000, 20):  # the file that there is takes no more then
            until(lambda length=length: self._takes_no(length), "the log is full")
        try:
            yield
        finally:
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def _takes_no(self, length):
        return self.ask(b"put 0 1000000 60 %d\r\n%b" % (length, b"x" * length)).startswith(b"OUT_OF_MEMORY")

    def step(self, seconds):
        """Set the server's wall clock, and have it look at it."""
        self.offset += seconds
        self._write_clock()
        self.ask(b"stats")

    def ask(self, command):
        """Say one command on a connection of its own, and return what comes back at once."""
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(PATIENCE)
            made.connect(str(self.path))
            made.sendall(command + b"\r\n")
            return made.recv(65_536)

    def close(self):
        """End it at once and remove its folder."""
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _faked(self):
        if self._clock is None:
            return {}
        self._write_clock()
        return faked(FAKETIME, self._clock)

    def _write_clock(self):
        new = self._clock.with_suffix(".new")
        new.write_text(f"{self.offset:+f}\n")
        new.replace(self._clock)  # it must never read half of it

    def _answers(self):
        assert self._process.poll() is None, (self.folder / "errors").read_text()
        try:
            return self.ask(b"stats").startswith(b"OK ")
        except OSError:
            return False


def until(holds, what):
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
        time.sleep(0.01)
