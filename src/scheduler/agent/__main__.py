"""The command `timerqueue`, also as `python -m scheduler.agent`."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

MISSING = 2


def main() -> NoReturn:
    """Run the command line and leave. Exit codes: 0 done, 1 not well or failed, 2 called or configured wrongly."""
    try:
        from .cli import cli  # noqa: PLC0415 - so that what is missing can be named
    except ModuleNotFoundError as exc:
        sys.exit(_say(f"timerqueue: {exc.name} is not installed: pip install 'timerqueue[agent]'"))
    try:
        cli(prog_name="timerqueue")
    except SystemExit as exc:
        _leave(exc.code)
    _leave(0)


def _leave(code: str | int | None) -> NoReturn:
    """Exit without waiting for name lookups that hang in their threads."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    is_held_up = any(not each.daemon for each in threading.enumerate() if each is not threading.current_thread())
    if is_held_up and (code is None or isinstance(code, int)):
        os._exit(code or 0)
    sys.exit(code)


def _say(text: str) -> int:
    print(text, file=sys.stderr)  # noqa: T201
    return MISSING


if __name__ == "__main__":
    main()
