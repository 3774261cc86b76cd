"""Regular expressions on texts from outside, by RE2, in linear time.

Long searches run in a thread, which a check leaves behind when its time is up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import anyio
import anyio.to_thread
from attrs import field, frozen

from ...toml import Unfit, text

MOST_SEARCHED: Final = 64 * 1024
"""Bytes."""

LARGEST: Final = 500
"""Steps of a program."""

AT_ONCE: Final = 2_000_000
"""Steps times bytes without a thread: at worst ten milliseconds."""

_MEMORY: Final = 2**20
_LONGEST: Final = 1_000
_NEEDED: Final = 'the library google-re2 for regular expressions: pip install "timerqueue[regex]"'


class NoPattern(ValueError):
    """A text is no regular expression."""


@frozen
class Pattern:
    """A regular expression in RE2's syntax."""

    text: str
    _program: Any = field(eq=False, repr=False)

    def __str__(self) -> str:
        return self.text

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self._program.groups)

    async def search(self, content: bytes | bytearray) -> tuple[str, ...] | None:
        """Find the match and its groups in the first 64 KiB."""
        searched = content[:MOST_SEARCHED].decode(errors="replace").encode()  # no expression fits what is no UTF-8
        if self._program.programsize * len(searched) <= AT_ONCE:
            found = self._program.search(searched)
        else:
            found = await anyio.to_thread.run_sync(self._program.search, searched, abandon_on_cancel=True)
        if found is None:
            return None
        return tuple((each or b"").decode(errors="replace") for each in (found[0], *found.groups()))


@lru_cache(maxsize=1_000)
def compiled(expression: str) -> Pattern:
    """Make a pattern. Raises NoPattern."""
    try:
        import re2  # noqa: PLC0415 - an extra, which few need
    except ImportError:
        raise NoPattern(_NEEDED) from None
    if len(expression) > _LONGEST:
        raise NoPattern(f"a regular expression of at most {_LONGEST:,} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        program = re2.compile(expression, options=options)
    except re2.error as exc:
        said = exc.args[0] if exc.args else b""
        said = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise NoPattern(f"a regular expression that RE2 knows ({said})") from None
    if program.programsize > LARGEST:
        size = f"{program.programsize:,} steps, more than {LARGEST}"
        raise NoPattern(f"a smaller regular expression (it has {size}: repetitions such as {{1,100}} count each time)")
    return Pattern(expression, program)


def regex(value: Any) -> Pattern:
    """Read a regular expression. Raises Unfit."""
    try:
        return compiled(text(value))
    except NoPattern as exc:
        raise Unfit(str(exc), value) from None
