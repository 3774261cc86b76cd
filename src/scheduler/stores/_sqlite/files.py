"""The lock and the ballast next to a SQLite database.

Never open the database file here: closing it would drop SQLite's locks, which POSIX gives to the process.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from typing import Final

from timerqueue import LeftBehind, Resident

from .._store import StoreUnavailable, StoreUnusable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

logger = getLogger(__name__)

BALLAST: Final = 8 * 1024 * 1024
"""Bytes: twice the write-ahead log that makes a checkpoint due. The ballast is made only if four times this is free."""

_MODE: Final = 0o600
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Lock(Resident):
    """`path`.lock, locked by the kernel: kill -9 releases it, even if forks live on.

    The file stays, because removing it would race.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}.lock"
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock. Raises StoreUnusable if another process has it or the file is a link. Raises StoreUnavailable
        if the file cannot be made.
        """
        self._check_link()
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | _NO_LINK, _MODE)
        except OSError as exc:
            raise self._refused(exc.strerror) from exc
        try:
            _lock(file)
        except OSError:
            owner = os.read(file, 20).decode("ascii", "replace").strip()
            os.close(file)
            database = self._path.removesuffix(".lock")
            msg = (
                f"{database} is in use by {f'process {owner}' if owner else 'another process'}: "
                "stop that process, or give this one a database of its own"
            )
            raise StoreUnusable(msg) from None
        self._file = file
        self._bind_to_process("lock")
        self._write(f"{os.getpid()}\n")

    def check(self) -> None:
        """Raise the errors of `take`, except for a lock that another process has."""
        self._check_link()
        folder = os.path.join(os.path.dirname(self._path), ".")  # noqa: PTH118, PTH120 - the dot: it must be a directory
        reason = _why_not(folder, os.W_OK | os.X_OK)
        if reason is None and os.path.lexists(self._path):
            reason = _why_not(self._path, os.R_OK | os.W_OK)
        if reason is not None:
            raise self._refused(reason)

    def release(self) -> None:
        if self._file is not None:
            self._write("")
            os.close(self._file)
            self._file = None

    def _leave_behind(self, left: LeftBehind, keep: tuple[str, ...]) -> None:  # noqa: ARG002 - nothing here refuses
        """Close a fork's copy of the file, which would keep the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _check_link(self) -> None:
        if os.path.islink(self._path):  # noqa: PTH114 - O_NOFOLLOW, where there is one, guards against a later link
            msg = f"{self._path} is a symbolic link, which could lead anywhere: remove it"
            raise StoreUnusable(msg)

    def _refused(self, reason: str | None) -> StoreUnavailable:
        msg = f"cannot make the lock {self._path} ({reason}): the directory must be there and writable"
        return StoreUnavailable(msg)

    def _write(self, text: str) -> None:
        if self._file is not None:
            with suppress(OSError):  # a full disk: the lock holds without it
                os.truncate(self._file, 0)
                os.lseek(self._file, 0, os.SEEK_SET)
                os.write(self._file, text.encode())


class Ballast:
    """`path`.ballast: deleted when the disk is full, so that history can be pruned. A closed database has none."""

    def __init__(self, path: str) -> None:
        self._path = Path(f"{path}.ballast")

    def put(self) -> None:
        with suppress(OSError):
            if self._path.exists() or shutil.disk_usage(self._path.parent).free < 4 * BALLAST:
                return
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, _MODE)
            try:
                _allocate(file)
            except OSError:
                self.remove()
                raise
            finally:
                os.close(file)

    def give_up(self, trouble: Exception) -> bool:
        was_there = self.remove()
        if was_there:
            logger.warning("%s is given up to make room, because of: %s", self._path, trouble)
        return was_there

    def remove(self) -> bool:
        with suppress(OSError):
            self._path.unlink()
            return True
        return False


def create(path: str) -> None:
    """Make a database that only its owner can read. SQLite gives its other files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK, _MODE))
    except FileExistsError:
        return
    except OSError as exc:
        msg = f"cannot make {path} ({exc.strerror}): the directory must be there and writable"
        raise StoreUnavailable(msg) from exc
    with suppress(OSError):  # Windows opens no directories
        directory = os.open(os.path.dirname(path), os.O_RDONLY)  # noqa: PTH120 - paths are texts here
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def check_writable(path: str) -> None:
    """Raise StoreUnavailable if the database is read-only: SQLite would make read-only files."""
    if _why_not(path, os.R_OK | os.W_OK) is not None:
        msg = f"{path} may not be read and written by this user: make it readable and writable"
        raise StoreUnavailable(msg)


def identity(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)  # noqa: PTH116 - once per commit
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _why_not(path: str, rights: int) -> str | None:
    """Return why this user lacks these rights, if so."""
    try:
        os.stat(path)  # noqa: PTH116 - paths are texts here
    except OSError as exc:
        return exc.strerror
    is_permitted = os.access(path, rights, effective_ids=os.access in os.supports_effective_ids)
    return None if is_permitted else os.strerror(errno.EACCES)


def _allocate(file: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, BALLAST)
    elif os.write(file, bytes(BALLAST)) < BALLAST:
        raise OSError(errno.ENOSPC, "no room")


def _lock(file: int) -> None:
    if sys.platform == "win32":
        os.lseek(file, 1 << 30, os.SEEK_SET)  # far behind the process id, which others read
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
