"""Run a program under limits, and leave nothing running: `python launch.py PROGRAM ...`.

Uses the standard library alone. Linux makes orphaned descendants our children: a new session hides from a signal to the
group, not from its parent. At the end or at SIGTERM all are killed; elsewhere the group.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress

LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: 60,  # seconds
    resource.RLIMIT_FSIZE: 64 * 2**20,  # bytes of each file
    resource.RLIMIT_NOFILE: 256,
}
LONGEST_END = 1
"""Seconds. Only another user's process takes longer."""

_BECOME_THE_PARENT_OF_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


class _Over(BaseException): ...


def main(argv: list[str]) -> None:
    """Run the program under limits."""
    for limit, most in LIMITS.items():
        _, hard = resource.getrlimit(limit)
        size = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (size, size))
    has_orphans = _take_orphans()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)
    status = None
    try:
        status = _ended(os.posix_spawn(argv[0], argv, os.environ))
    except OSError as exc:
        sys.exit(f"cannot start {argv[0]}: {exc.strerror}")
    except _Over:
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if has_orphans:
            _kill_all()
    _end_as(-signal.SIGTERM if status is None else os.waitstatus_to_exitcode(status))


def _take_orphans() -> bool:
    """Become the parent of orphaned descendants. False: the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes  # noqa: PLC0415 - not everywhere

        return bool(ctypes.CDLL(None).prctl(_BECOME_THE_PARENT_OF_ORPHANS, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def _interrupt(_number: int, _frame: object) -> None:
    raise _Over


def _ended(program: int) -> int:
    """Give up our input and output, so that the program's show their ends."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1, 2):
        os.dup2(nowhere, each)
    while True:
        ended, status = os.wait()
        if ended == program:
            return status


def _kill_all() -> None:
    """Each child's children become ours."""
    with suppress(_Over, ChildProcessError):
        signal.alarm(LONGEST_END)
        while True:
            found = _children()
            for child in found:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            os.waitpid(-1, 0 if found else os.WNOHANG)  # one may have come to us as we looked
    signal.alarm(0)


def _children() -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib takes long to import
        with suppress(OSError), open(f"/proc/{name}/stat", encoding="latin-1") as opened:  # noqa: PTH123 - as above
            if int(opened.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found


def _end_as(code: int) -> None:
    if code < 0:
        with suppress(OSError):  # SIGKILL needs nothing
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(abs(code))


if __name__ == "__main__":
    main(sys.argv[1:])
