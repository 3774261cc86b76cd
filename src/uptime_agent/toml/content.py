"""Read a file without waiting."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


def content_of(file: Path, most: int, *, follows_links: bool = True) -> bytes:
    """Read at most `most` bytes and one.

    Raises OSError, also for pipes and devices, which might wait, and ValueError for an impossible name.
    """
    opened = os.open(file, os.O_RDONLY | _NO_WAIT | (0 if follows_links else _NO_LINK))
    with os.fdopen(opened, "rb") as stream:
        if (strange := what_else(os.fstat(opened).st_mode)) is not None:
            raise OSError(None, strange)
        return stream.read(most + 1)


def what_else(mode: int) -> str | None:
    """Name a file that is not regular."""
    if stat.S_ISREG(mode):
        return None
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}
    return f"it is {kinds.get(stat.S_IFMT(mode), 'a device')}, and no file"
