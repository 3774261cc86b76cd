"""Sockets that listen: at an address, or at a path that only our user may reach."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Final

try:
    import fcntl
except ImportError:  # where files are locked in another way
    fcntl = None  # type: ignore[assignment]

BACKLOG: Final = 1_024

LONGEST_PATH: Final = 107
"""Bytes of a Unix socket's path."""

LOOKS: Final = 100
LOOK_S: Final = 0.05
"""Seconds between two looks whether another process has left a folder."""

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_CREDENTIALS: Final = "iII"
"""Process, user and group."""


class NotListening(Exception):
    """Listening failed. The text says why."""


class _Unfit(Exception):
    """A path, or its folder, is no place for a socket."""


def listen(host: str, port: int, what: str = "requests") -> socket.socket:
    """Listen at an address. `what`: a word for errors. Raises NotListening."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as exc:
        raise NotListening(f"cannot listen for {what} at {host} port {port}: {_reason(exc)}") from None
    listener.settimeout(0)
    return listener


def listen_at(path: Path, what: str = "requests") -> socket.socket:
    """Listen at a Unix socket of our user alone. Its folder is made if it is missing. Raises NotListening.

    A socket without a listener is replaced.
    """
    try:
        _check_length(path)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        _check_folder(path.parent)
        with held(path.parent):
            _remove_stale(path)
            return _bound(path)
    except _Unfit as exc:
        why = str(exc)
    except OSError as exc:
        why = _reason(exc)
    raise NotListening(f"cannot listen for {what} at {path}: {why}")


def forget(listener: socket.socket) -> None:
    """Close a listener. A Unix socket leaves no file."""
    path = listener.getsockname() if listener.family == socket.AF_UNIX else None
    listener.close()
    if path:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - a name as the system has it


def uid_of(connection: socket.socket) -> int | None:
    """Return the user at the other end of a Unix socket. None: this system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    found = connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize(_CREDENTIALS))
    _, uid, _ = struct.unpack(_CREDENTIALS, found)
    return int(uid)


def _bound(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.settimeout(0)
    return listener


def _check_length(path: Path) -> None:
    size = len(os.fsencode(path))
    if size > LONGEST_PATH:
        raise _Unfit(f"the path has {size} bytes, and that of a socket has at most {LONGEST_PATH}: name a shorter one")


def _check_folder(folder: Path) -> None:
    """Raise _Unfit unless only our user, and root, may write to the folder."""
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise _Unfit(f"{folder} is no folder")
    if found.st_uid not in {0, os.geteuid()}:
        raise _Unfit(f"the folder {folder} belongs to another user: chown it to the user of the agent")
    if found.st_mode & _OTHERS_WRITE:
        raise _Unfit(f"others may write to the folder {folder}: chmod 700 it")


def _remove_stale(path: Path) -> None:
    """Raise _Unfit if another process listens there, or if it is no socket."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise _Unfit("there is a file that is no socket: remove it, or name another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(0)
        try:
            asking.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except BlockingIOError:  # its queue is full, so another process listens
            pass
    raise _Unfit("another agent listens there")


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let one process at a time replace what stands in the folder. Raises OSError, also if another one keeps it."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Each user who may read the folder can lock it, and keep it locked: give up then."""
    for _ in range(LOOKS):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        Event().wait(LOOK_S)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))


def _reason(error: OSError) -> str:
    """Its own text repeats the address."""
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
