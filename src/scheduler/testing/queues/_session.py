"""One connection's commands to a fake beanstalkd, as text (doc/protocol.txt of the real one).

As in the real one, answers follow commands strictly in order, and a waiting connection reads nothing else. After a
malformed `put` its body is read as the next command.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol

from ._jobs import MARGIN, ServerJob, ServerJobs

LONGEST_LINE: Final = 224
MAX_NUMBER: Final = 2**32 - 1
MAX_JOB_NUMBER: Final = 2**64 - 1
_TUBE: Final = re.compile(r"[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]{0,199}")


class CommandRefused(Exception):
    def __init__(self, answer: str) -> None:
        super().__init__(answer)
        self.answer = answer


def refuse(answer: str) -> NoReturn:
    raise CommandRefused(answer)


class SessionServer(Protocol):
    jobs: ServerJobs
    commands: Counter[str]
    is_draining: bool
    is_full: bool
    longest_body: int
    id: str

    def now(self) -> float:
        """Wall clock, in seconds."""

    def real_now(self) -> float:
        """Seconds of real time."""

    def tubes(self) -> set[str]: ...

    def statistics(self, tube: str | None = None) -> dict[str, Any]: ...


class ServerSession:
    """A connection. `waits_until`: an instant while it reserves."""

    def __init__(self, server: SessionServer) -> None:
        self.server = server
        self.incoming = b""
        self.outgoing = b""
        self.using = "default"
        self.watching = ["default"]
        self.waits_until: float | None = None
        self.is_over = False
        self.has_put = False
        self.has_reserved = False

    def receive(self, data: bytes) -> None:
        self.incoming += data
        while self.waits_until is None and not self.is_over and self._one():
            pass

    def look_again(self) -> None:
        if self.waits_until is not None and self._reserved(self.waits_until):
            self.receive(b"")

    def _one(self) -> bool:
        line, end, rest = self.incoming.partition(b"\r\n")
        if not end:
            if len(line) >= LONGEST_LINE:
                self.incoming = b""
                self._say("BAD_FORMAT")
            return False
        words = line.decode("latin-1").split(" ")
        if words[0] == "put":
            return self._put(words[1:], rest)
        self.incoming = rest
        try:
            self._carry_out(words[0], words[1:])
        except CommandRefused as refused:
            self._say(refused.answer)
        return True

    def _carry_out(self, word: str, words: list[str]) -> None:
        command = COMMANDS.get(word)
        if command is None:
            refuse("UNKNOWN_COMMAND")
        self.server.commands[word] += 1
        command(self, *words) if command.__code__.co_argcount == len(words) + 1 else refuse("BAD_FORMAT")

    def _put(self, words: list[str], rest: bytes) -> bool:
        server = self.server
        try:
            priority, delay, ttr, size = map(number, words)
        except (CommandRefused, ValueError):
            self.incoming = rest  # out of step: the body is read as a command
            self._say("BAD_FORMAT")
            return True
        if len(rest) < size + 2:
            return False
        body, end, self.incoming = rest[:size], rest[size : size + 2], rest[size + 2 :]
        server.commands["put"] += 1
        self.has_put = True
        if size > server.longest_body:
            self._say("JOB_TOO_BIG")
        elif end != b"\r\n":
            self._say("EXPECTED_CRLF")
        elif server.is_draining or server.is_full:
            self._say("DRAINING" if server.is_draining else "OUT_OF_MEMORY")
        else:
            job = server.jobs.put(server.now(), self.using, body, priority=priority, delay=delay, ttr=ttr)
            self._say(f"INSERTED {job.number}")
        return True

    def _say(self, line: str, data: bytes | None = None) -> None:
        self.outgoing += line.encode("latin-1") + b"\r\n" + (b"" if data is None else data + b"\r\n")

    def _say_job(self, word: str, job: ServerJob) -> None:
        self._say(f"{word} {job.number} {len(job.body)}", job.body)

    def _say_yaml(self, lines: list[str]) -> None:
        text = "".join(f"{line}\n" for line in ["---", *lines]).encode("latin-1")
        self._say(f"OK {len(text)}", text)

    def _say_statistics(self, statistics: dict[str, Any]) -> None:
        self._say_yaml([f"{name}: {value}" for name, value in statistics.items()])

    def _job(self, text: str) -> ServerJob:
        return self.server.jobs.by_number.get(number(text, MAX_JOB_NUMBER)) or refuse("NOT_FOUND")

    def _mine(self, text: str) -> ServerJob:
        return self.server.jobs.held(number(text, MAX_JOB_NUMBER), self) or refuse("NOT_FOUND")

    def _reserved(self, until: float) -> bool:
        now, jobs = self.server.now(), self.server.jobs
        held = jobs.held_by(self)
        if (job := jobs.next_ready(now, self.watching)) is not None:
            jobs.reserve(job, now, self)
            self._say_job("RESERVED", job)
        elif any(each.until - now <= MARGIN for each in held):
            self._say("DEADLINE_SOON")
        elif self.server.real_now() >= until:
            self._say("TIMED_OUT")
        else:
            self.waits_until = until
            return False
        self.waits_until = None
        return True

    def reserve(self) -> None:
        self.has_reserved = True
        self._reserved(float("inf"))

    def reserve_with_timeout(self, seconds: str) -> None:
        self.has_reserved = True
        self._reserved(self.server.real_now() + number(seconds))

    def reserve_job(self, text: str) -> None:
        job = self._job(text)
        if job.state == "reserved":
            refuse("NOT_FOUND")
        self.server.jobs.reserve(job, self.server.now(), self)
        self._say_job("RESERVED", job)

    def delete(self, text: str) -> None:
        self._say("DELETED" if self.server.jobs.delete(number(text, MAX_JOB_NUMBER), self) else "NOT_FOUND")

    def release(self, text: str, priority: str, delay: str) -> None:
        self.server.jobs.release(self._mine(text), self.server.now(), number(priority), number(delay))
        self._say("RELEASED")

    def bury(self, text: str, priority: str) -> None:
        self.server.jobs.bury(self._mine(text), number(priority))
        self._say("BURIED")

    def touch(self, text: str) -> None:
        job = self._mine(text)
        job.until = self.server.now() + job.ttr
        self._say("TOUCHED")

    def use(self, tube: str) -> None:
        self.using = named(tube)
        self._say(f"USING {tube}")

    def watch(self, tube: str) -> None:
        if named(tube) not in self.watching:
            self.watching.append(tube)
        self._say(f"WATCHING {len(self.watching)}")

    def ignore(self, tube: str) -> None:
        if self.watching == [tube]:
            refuse("NOT_IGNORED")
        self.watching = [each for each in self.watching if each != tube]
        self._say(f"WATCHING {len(self.watching)}")

    def peek(self, text: str) -> None:
        self._say_job("FOUND", self._job(text))

    def peek_ready(self) -> None:
        self._say_job("FOUND", self.server.jobs.first(self.using, "ready") or refuse("NOT_FOUND"))

    def peek_delayed(self) -> None:
        self._say_job("FOUND", self.server.jobs.first(self.using, "delayed") or refuse("NOT_FOUND"))

    def peek_buried(self) -> None:
        self._say_job("FOUND", self.server.jobs.first(self.using, "buried") or refuse("NOT_FOUND"))

    def kick(self, most: str) -> None:
        self._say(f"KICKED {self.server.jobs.kick(self.using, number(most))}")

    def kick_job(self, text: str) -> None:
        job = self._job(text)
        if job.state not in {"buried", "delayed"}:
            refuse("NOT_FOUND")
        self.server.jobs.kick_job(job)
        self._say("KICKED")

    def stats(self) -> None:
        self._say_statistics(self.server.statistics())

    def stats_job(self, text: str) -> None:
        self._say_statistics(self._job(text).statistics(self.server.now()))

    def stats_tube(self, tube: str) -> None:
        if named(tube) not in self.server.tubes():
            refuse("NOT_FOUND")
        self._say_statistics(self.server.statistics(tube))

    def list_tubes(self) -> None:
        self._say_yaml([f"- {tube}" for tube in sorted(self.server.tubes())])

    def list_tube_used(self) -> None:
        self._say(f"USING {self.using}")

    def list_tubes_watched(self) -> None:
        self._say_yaml([f"- {tube}" for tube in self.watching])

    def pause_tube(self, tube: str, seconds: str) -> None:
        if named(tube) not in self.server.tubes():
            refuse("NOT_FOUND")
        self.server.jobs.pause(tube, self.server.now(), number(seconds))
        self._say("PAUSED")

    def quit(self) -> None:
        self.is_over = True


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        ServerSession.reserve,
        ServerSession.reserve_with_timeout,
        ServerSession.reserve_job,
        ServerSession.delete,
        ServerSession.release,
        ServerSession.bury,
        ServerSession.touch,
        ServerSession.use,
        ServerSession.watch,
        ServerSession.ignore,
        ServerSession.peek,
        ServerSession.peek_ready,
        ServerSession.peek_delayed,
        ServerSession.peek_buried,
        ServerSession.kick,
        ServerSession.kick_job,
        ServerSession.stats,
        ServerSession.stats_job,
        ServerSession.stats_tube,
        ServerSession.list_tubes,
        ServerSession.list_tube_used,
        ServerSession.list_tubes_watched,
        ServerSession.pause_tube,
        ServerSession.quit,
    )
}


def number(text: str, most: int = MAX_NUMBER) -> int:
    """Read digits: 32 bits, or 64 for a job's number."""
    if not (text.isascii() and text.isdigit()) or int(text) > most:
        refuse("BAD_FORMAT")
    return int(text)


def named(tube: str) -> str:
    if not _TUBE.fullmatch(tube):
        refuse("BAD_FORMAT")
    return tube
