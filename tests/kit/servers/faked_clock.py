"""A wall clock that a program reads from a file, by libfaketime. What else has a clock goes on as it is."""

from pathlib import Path

FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))), None)
SHARED = ("sem.faketime_sem_{pid}", "faketime_shm_{pid}")
"""What libfaketime makes for each process that starts, by its id, for programs that this starts in turn."""


def faked(library, clock):
    """Return the variables with which a program reads its wall clock's offset from that file."""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def left_by(pid):
    """Return the files in which libfaketime keeps what a process of that id shares."""
    return [path for name in SHARED if (path := Path("/dev/shm", name.format(pid=pid))).exists()]


def unshare(pid):
    """Remove them once the process has them open: it goes on with them, and leaves none behind, even if it is killed.

    Another process of the same id could not start under libfaketime later.
    """
    for path in left_by(pid):
        path.unlink(missing_ok=True)
