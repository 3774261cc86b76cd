"""Whose trouble an error is: the target's (down), or ours (unknown)."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from attrs import frozen

from .result import Status
from .tls_words import handshake, refused


class CheckFailed(Exception):
    """No proper answer. Says what came instead."""


class NotInTime(CheckFailed):
    """No answer in time. The delay may be ours."""


@frozen
class Trouble:
    """A judged error, in words."""

    status: Status
    text: str
    is_late: bool = False
    """The only trouble is our timeout."""


OUT_OF_DESCRIPTORS: Final = "this machine ran out of file descriptors: raise `ulimit -n`, or lower the limit `total`"

_OURS: Final = {
    errno.EMFILE: OUT_OF_DESCRIPTORS,
    errno.ENFILE: OUT_OF_DESCRIPTORS,
    errno.ENOBUFS: "this machine ran out of network buffers",
    errno.ENOMEM: "this machine ran out of memory",
    errno.EADDRNOTAVAIL: "this machine has no address or port left to connect from",
    errno.ENETUNREACH: "this machine has no route to {peer}",
    errno.ENETDOWN: "this machine's network is down",
    errno.EAFNOSUPPORT: "this machine cannot speak to addresses like {peer}",
    errno.EACCES: "this machine does not allow connections to {peer}",
    errno.EPERM: "this machine does not allow connections to {peer}",
}
_THEIRS: Final = {
    errno.ECONNREFUSED: "connection refused by {peer}",
    errno.ECONNRESET: "connection reset by {peer}",
    errno.EPIPE: "connection closed by {peer}",
    errno.EHOSTUNREACH: "no way to host {peer}",
    errno.ETIMEDOUT: "no answer from {peer}",
}


def judge(error: BaseException, peer: str) -> Trouble | None:
    """Judge an error. None: no network trouble."""
    failed: Trouble | None = None
    for each in _chain(error):
        match each:
            case ssl.SSLError():
                if (broken := _of_tls(each, peer)) is not None:
                    return broken
            case socket.gaierror():  # of an address, for names have been looked up before
                said = (each.strerror or str(each)).lower()
                return Trouble(Status.UNKNOWN, f"this machine can make nothing of the address {peer}: {said}")
            case OSError(errno=int(number)) if number in _OURS:
                return Trouble(Status.UNKNOWN, _OURS[number].format(peer=peer))
            case OSError(errno=int(number)):
                text = _THEIRS.get(number) or f"{(each.strerror or os.strerror(number)).lower()} at {{peer}}"
                failed = Trouble(Status.DOWN, text.format(peer=peer))
            case CheckFailed():
                failed = failed or Trouble(Status.DOWN, str(each), is_late=isinstance(each, NotInTime))
            case TimeoutError() if not each.args:
                failed = failed or Trouble(Status.DOWN, f"no connection to {peer} in time", is_late=True)
            case OSError():
                failed = failed or Trouble(Status.DOWN, str(each) or f"no connection to {peer}")
            case _:
                pass
    return failed


def _of_tls(error: ssl.SSLError, peer: str) -> Trouble | None:
    match error:
        case ssl.SSLWantReadError() | ssl.SSLWantWriteError():  # how OpenSSL asks for more, and no trouble
            return None
        case ssl.SSLCertVerificationError():
            return Trouble(Status.DOWN, f"certificate of {peer} {refused(error)}")
        case _:
            return Trouble(Status.DOWN, f"TLS with {peer} failed: {handshake(error)}")


def out_of_descriptors() -> bool:
    """Whether this process can open nothing: lookups fail without a reason."""
    try:
        os.close(os.dup(2))
    except OSError as exc:
        return exc.errno in (errno.EMFILE, errno.ENFILE)
    return False


def _chain(error: BaseException) -> Iterator[BaseException]:
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        waiting.extend(cause for cause in (each.__cause__, each.__context__) if cause is not None)
