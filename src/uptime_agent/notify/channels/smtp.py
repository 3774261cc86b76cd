"""Connections to mail servers with bounded replies.

`smtplib` has no bound: before STARTTLS an attacker could send lines forever.
"""

from __future__ import annotations

import smtplib
from typing import BinaryIO, Final

LONGEST_REPLY: Final = 64 * 1024
"""Bytes."""


class ReplyTooLong(smtplib.SMTPServerDisconnected):
    """The reply is too long; the connection is closed."""


class _ReplyLines:
    """A server's lines. `left`: bytes that a reply may still have."""

    def __init__(self, stream: BinaryIO) -> None:
        self.left = LONGEST_REPLY
        self._stream = stream

    def readline(self, size: int) -> bytes:
        """Raises OSError if the reply is too long."""
        line = self._stream.readline(size)
        self.left -= len(line)
        if self.left < 0:
            raise OSError("the reply is too long")
        return line

    def close(self) -> None:
        self._stream.close()


class PlainSmtp(smtplib.SMTP):
    """A connection without TLS, or with STARTTLS."""

    def getreply(self) -> tuple[int, bytes]:
        """Read a reply. Raises ReplyTooLong."""
        if self.file is None and self.sock is not None:
            self.file = _ReplyLines(self.sock.makefile("rb"))
        lines = self.file
        if lines is not None:
            lines.left = LONGEST_REPLY
        try:
            return super().getreply()
        except smtplib.SMTPServerDisconnected:  # and closed, by smtplib
            if lines is not None and lines.left < 0:
                raise ReplyTooLong(f"cut off: its reply has more than {LONGEST_REPLY // 1024} KiB") from None
            raise


class Encrypted(PlainSmtp, smtplib.SMTP_SSL):
    """A connection with TLS from the start."""
