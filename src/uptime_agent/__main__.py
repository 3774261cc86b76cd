"""The command `timerqueue`, also as `python -m uptime_agent`."""

from __future__ import annotations

import io
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn, TextIO

MISSING = 2


def main() -> NoReturn:
    """Exit with 0: done, 1: not well or failed, 2: called or configured wrongly."""
    leave(run())


def run() -> str | int | None:
    """Run the command, and return its exit code. The caller cleans up and calls `leave`."""
    sys.stdout, sys.stderr = _writable(sys.stdout), _writable(sys.stderr)
    try:
        from .cli import cli  # noqa: PLC0415 - so that what is missing can be named
    except ModuleNotFoundError as exc:
        return _say(f"timerqueue: {exc.name} is not installed: pip install 'timerqueue[agent]'")
    try:
        cli(prog_name="timerqueue")
    except SystemExit as exc:
        return exc.code
    return 0


def _writable(stream: TextIO | None) -> TextIO:
    """Escape characters outside the stream's encoding."""
    if stream is None:  # closed before we began: the next opened file, the store's, would get its number
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open until the end
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def leave(code: str | int | None) -> NoReturn:
    """Exit without waiting for name lookups that hang."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # Python would try again as it ends, and complain
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    is_held_up = any(not each.daemon for each in threading.enumerate() if each is not threading.current_thread())
    if is_held_up and (code is None or isinstance(code, int)):
        os._exit(code or 0)
    sys.exit(code)


def _say(text: str) -> int:
    print(text, file=sys.stderr)  # noqa: T201
    return MISSING


if __name__ == "__main__":
    main()
