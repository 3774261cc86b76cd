"""Where tests write: into memory where that can be, as a disk has thousands of small files made and removed at once.

What a process has written outlives it there as well, whatever way it ends. That a disk has it when it says so no test
could see either way: nobody takes its power away.
"""

import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 6 << 30
"""Bytes that must be free: eight workers, each with a PostgreSQL or more, have had up to half of that."""


def lie_in_memory():
    """Have all temporary files of this process, and of those that it starts, lie in memory if there is room.

    Who has set TMPDIR is heeded.
    """
    if "TMPDIR" not in os.environ and _may_run_programs(MEMORY) and min(_free(MEMORY), _available()) >= ROOM:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None  # it may have been looked for already


def _may_run_programs(folder):
    """Whether files can be made in it and be run: in many a container they cannot."""
    return os.access(folder, os.W_OK | os.X_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC


def _free(folder):
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize


def _available():
    """How much memory there is for new programs, as Linux says."""
    said = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
    return int(said["MemAvailable"].split()[0]) << 10
