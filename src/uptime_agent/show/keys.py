"""Keys that choose the shown part of the table.

    j, down      one row down            /         filter rows by a part of a name, or a status
    k, up        one row up              Enter     done
    space, b     a page down, up         Escape    show all again
    g, G         the beginning, the end

While you type a filter, letters are text, and only keys such as Up and Page Down scroll. Each redraw reads the keys
pressed since the last one.
"""

from __future__ import annotations

import atexit
import os
import re
import select
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

from attrs import define

HINT: Final = "j k scroll, / filters"
_AT_ONCE: Final = 4_096
_LONGEST: Final = 100
_END: Final = 10**9
_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|.", re.DOTALL)
_SAME: Final = {"\r": "\n", "\x08": "\x7f"}
_SCROLLS: Final = {
    "\x1b[A": "k", "\x1bOA": "k", "\x1b[B": "j", "\x1bOB": "j", "\x1b[5~": "b", "\x1b[6~": " ",
    "\x1b[H": "g", "\x1b[1~": "g", "\x1b[F": "G", "\x1b[4~": "G",
}  # fmt: skip
"""The letters that do the same, unless one types: then letters are text."""


@define
class ShownPart:
    """The rows to show: from row `first` on, of targets with `words` in their name or status."""

    first: int = 0
    words: str = ""
    is_typing: bool = False

    def press(self, key: str, page: int) -> None:
        """Take a key. `page`: rows on the screen."""
        if self.is_typing and key not in _SCROLLS:
            self._type(key)
            return
        key = _SCROLLS.get(key, key)
        steps = {"j": 1, "k": -1, " ": page, "b": -page}
        if key in steps:
            self.first = max(self.first + steps[key], 0)
        elif key in {"g", "G"}:
            self.first = 0 if key == "g" else _END
        elif key == "/":
            self.is_typing, self.words, self.first = True, "", 0
        elif key == "\x1b":
            self.words, self.first = "", 0

    def _type(self, key: str) -> None:
        if key == "\n":
            self.is_typing = False
        elif key == "\x1b":
            self.is_typing, self.words = False, ""
        elif key == "\x7f":
            self.words = self.words[:-1]
        elif key.isprintable() and len(self.words) < _LONGEST:
            self.words += key

    def has(self, *texts: str) -> bool:
        """Whether a text has the words."""
        return any(self.words.casefold() in each.casefold() for each in texts)

    def start(self, rows: int, page: int) -> int:
        """Return the first row to show. At the end of the table, a full page is shown."""
        last = rows - page if self.first >= _END else rows - 1
        self.first = max(min(self.first, last), 0)
        return self.first


def keys_in(text: str) -> Iterator[str]:
    """Yield the keys in terminal input: a character, or the sequence that a key without one sends."""
    for found in _SEQUENCE.findall(text):
        yield _SAME.get(found, found)


class Keyboard:
    """Reads keys while we are in the terminal's foreground, without echo."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._file: int | None = None
        self._before: Sequence[Any] | None = None

    def begin(self) -> bool:
        """Begin to take keys. False: there is no terminal, or we are in its background."""
        try:
            import termios  # noqa: PLC0415 - on POSIX alone
            import tty  # noqa: PLC0415 - as above
        except ImportError:
            return False
        try:
            file = -1 if self._stream is None else self._stream.fileno()
            if file < 0 or not os.isatty(file) or not _is_in_front(file):
                return False
            self._before = termios.tcgetattr(file)
            tty.setcbreak(file, termios.TCSANOW)
        except (OSError, ValueError, termios.error):
            return False
        self._file = file
        atexit.register(self.end)
        return True

    def pressed(self) -> Iterator[str]:
        """Yield new keys."""
        if self._file is None or not _is_in_front(self._file):
            return
        with suppress(OSError, ValueError):
            if select.select([self._file], [], [], 0)[0]:
                yield from keys_in(os.read(self._file, _AT_ONCE).decode("utf-8", "replace"))

    def end(self) -> None:
        """Restore the terminal."""
        file, self._file = self._file, None
        if file is None or self._before is None:
            return
        import termios  # noqa: PLC0415 - as above

        atexit.unregister(self.end)
        with suppress(OSError, termios.error):
            termios.tcsetattr(file, termios.TCSADRAIN, list(self._before))


def _is_in_front(file: int) -> bool:
    """Whether we are in the foreground. In the background, a change of the terminal would stop this process."""
    try:
        return os.tcgetpgrp(file) == os.getpgrp()
    except OSError:
        return True
