"""A beanstalkd in this process, for tests without a real one."""

from __future__ import annotations

import selectors
import socket
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Self

from timerqueue import Clock, SystemClock

from ._jobs import ServerJobs
from ._session import ServerSession
from ._statistics import of_server, of_tube

__all__ = ["FakeBeanstalkd"]

LONGEST_BODY = 65_535

_starts = count(1)


class FakeBeanstalkd:
    """A beanstalkd that keeps time by `clock`. It listens at `address`: the Unix socket `path`, or a free port of
    127.0.0.1.

    Use it as a context manager. `is_draining` and `is_full` make it refuse jobs. `longest_body`: bytes of a job.
    `commands` counts its commands. Call `wake` after turning the clock. `reserve-with-timeout` counts real seconds,
    whatever `clock` says, so a clock that stands still delays no test.
    """

    def __init__(self, path: Path | str | None = None, *, clock: Clock | None = None) -> None:
        self._path = None if path is None else str(path)
        self._clock = SystemClock() if clock is None else clock
        self._real = SystemClock()
        self.jobs = ServerJobs()
        self.commands: Counter[str] = Counter()
        self.is_draining = False
        self.is_full = False
        self.longest_body = LONGEST_BODY
        self.address = ""
        self.id = ""
        self._began = 0.0
        self._connections = 0
        self._sessions: dict[socket.socket, ServerSession] = {}
        self._lock = Lock()
        self._thread: Thread | None = None
        self._is_over = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def now(self) -> float:
        """Return its wall clock, in seconds."""
        return self._clock.wall()

    def real_now(self) -> float:
        """Return seconds of real time."""
        return self._real.monotonic()

    def start(self) -> None:
        """Listen, with a new id and the jobs that it holds."""
        self.id = f"{next(_starts):016d}"  # no letter in it, as in one id of two thousand
        self._began, self._connections = self.real_now(), 0
        self.commands.clear()
        self._is_over = False
        if self._path is None:
            at = ("127.0.0.1", int(self.address.rpartition(":")[2] or 0))
            self._listener = socket.create_server(at)
            self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        else:
            Path(self._path).unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(self._path)
            self._listener.listen()
            self.address = f"unix:{self._path}"
        self._waker, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        for each in (self._listener, self._woken):
            each.settimeout(0)
            self._selector.register(each, selectors.EVENT_READ)
        self._thread = Thread(target=self._serve, name="fake beanstalkd", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it as a kill does: reserved jobs are ready again at the next start."""
        self._is_over = True
        self.wake()
        if self._thread is not None:
            self._thread.join()
        for each in (*self._sessions, self._listener, self._waker, self._woken):
            each.close()
        for session in self._sessions.values():
            self.jobs.give_back(session)
        self._sessions.clear()
        self._selector.close()

    def restart(self, *, log: bool) -> None:
        """Stop and start it. `log`: it keeps its jobs. Otherwise it has none, and numbers begin at 1 again."""
        self.stop()
        if not log:
            self.jobs = ServerJobs()
        self.start()

    def wake(self) -> None:
        """Make the server look at its clock. Its thread then answers waiting connections, soon after this returns."""
        with suppress(OSError):
            self._waker.send(b"!")

    def tubes(self) -> set[str]:
        """Return the tubes of jobs and connections."""
        sessions = list(self._sessions.values())
        used = {tube for session in sessions for tube in (session.using, *session.watching)}
        return {"default", *self.jobs.tubes(), *used}

    def statistics(self, tube: str | None = None) -> dict[str, Any]:
        """Return the answer to `stats`, or `stats-tube`."""
        sessions = self._sessions.values()
        if tube is not None:
            return of_tube(self, sessions, tube)
        uptime = int(self.real_now() - self._began)
        return of_server(self, sessions, connections=self._connections, uptime=uptime)

    def _serve(self) -> None:
        while not self._is_over:
            for key, _ in self._selector.select(self._seconds_to_wait()):
                found = key.fileobj
                assert isinstance(found, socket.socket)
                self._heard(found)
            self._look_again()

    def _seconds_to_wait(self) -> float:
        """Return the seconds until something changes by itself. A clock turned by hand needs `wake`."""
        deadline = self.jobs.next_deadline(self.now())
        waits = [session.waits_until - self.real_now() for session in self._sessions.values() if session.waits_until]
        if deadline is not None:
            waits.append(max(deadline - self.now(), 0.01))
        return max(min((*waits, 10.0)), 0.0)

    def _heard(self, found: socket.socket) -> None:
        if found is self._listener:
            made, _ = found.accept()
            self._sessions[made] = ServerSession(self)
            self._connections += 1
            self._selector.register(made, selectors.EVENT_READ)
        elif found is self._woken:
            found.recv(4_096)
        else:
            self._read(found)

    def _read(self, found: socket.socket) -> None:
        session = self._sessions[found]
        data = b""
        with suppress(OSError):
            data = found.recv(65_536)
        session.is_over |= not data
        self.jobs.pass_time(self.now())
        session.receive(data)
        self._answer(found, session)

    def _look_again(self) -> None:
        self.jobs.pass_time(self.now())
        for found, session in list(self._sessions.items()):
            session.look_again()
            self._answer(found, session)

    def _answer(self, found: socket.socket, session: ServerSession) -> None:
        with suppress(OSError):
            if session.outgoing:
                found.sendall(session.outgoing)
        session.outgoing = b""
        if session.is_over:
            self._selector.unregister(found)
            found.close()
            del self._sessions[found]
            self.jobs.give_back(session)
