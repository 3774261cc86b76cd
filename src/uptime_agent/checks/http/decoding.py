"""Decompression: a few bytes may stand for gigabytes."""

from __future__ import annotations

import zlib
from typing import Final

from anyio.lowlevel import checkpoint

from ..contract import CheckFailed

STEP: Final = 65_536
"""Bytes after which other tasks get a turn."""

_PLAIN: Final = ("", "identity")
_GZIP: Final = ("gzip", "x-gzip")
_ZLIB_WINDOW: Final = 15
_OF_GZIP: Final = 16
_ZLIB_METHOD: Final = 8


class PlainBody:
    """An uncompressed body, up to `most` bytes."""

    def __init__(self, most: int) -> None:
        self.content = bytearray()
        self._most = most

    async def take(self, data: bytes) -> None:
        """Take the next part."""
        self.content += data[: self._most - len(self.content)]


class Inflated:
    """A body in gzip or deflate, up to `most` bytes of output."""

    def __init__(self, most: int, encoding: str) -> None:
        self.content = bytearray()
        self._most = most
        self._encoding = encoding
        self._inflate: zlib._Decompress | None = None

    async def take(self, data: bytes) -> None:
        """Take the next part. Raises CheckFailed if its encoding is wrong."""
        while data and len(self.content) < self._most:
            if self._inflate is None:
                self._inflate = zlib.decompressobj(self._window(data))
            try:
                self.content += self._inflate.decompress(data, min(STEP, self._most - len(self.content)))
            except zlib.error:
                raise CheckFailed(f"its body is not encoded as {self._encoding}, although it says so") from None
            data = b"" if self._inflate.eof else self._inflate.unconsumed_tail
            await checkpoint()

    def _window(self, data: bytes) -> int:
        if self._encoding in _GZIP:
            return _OF_GZIP + _ZLIB_WINDOW
        has_header = data[0] & 0x0F == _ZLIB_METHOD
        return _ZLIB_WINDOW if has_header else -_ZLIB_WINDOW  # "deflate" is sent with and without it


def decoder(encoding: str, most: int) -> PlainBody | Inflated | None:
    """Make a decoder; None: unsupported."""
    if encoding in _PLAIN:
        return PlainBody(most)
    return Inflated(most, encoding) if encoding in (*_GZIP, "deflate") else None
