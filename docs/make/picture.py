"""Draw docs/live-table.svg: `python docs/make/picture.py` runs the demo for 20 s, and keeps its last table."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "live-table.svg"
WIDTH, HEIGHT = 124, 30
REDRAW = re.compile(r"(?:\x1b\[1A\x1b\[2K)+|\x1b\[\?25[hl]")
"""What the table writes before it draws itself again: it moves up line by line, and hides and shows the cursor."""


def demo(seconds: str) -> str:
    """Run the demo in a terminal of its own for so long. Return everything that it has written."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--for", seconds]
    env = os.environ | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True):
        os.close(theirs)
        output = bytearray()
        with suppress(OSError):  # the terminal is gone as the demo ends
            while more := os.read(ours, 65_536):
                output += more
    os.close(ours)
    return output.decode()


def last_table(output: str) -> str:
    """Return the last table in the output, without the notices above it and the summary below it."""
    frames = [each for each in REDRAW.split(output.replace("\r", "")) if "next" in each and "checks" in each]
    if not frames:
        msg = f"the demo has drawn no table: {output[-500:]!r}"
        raise ValueError(msg)
    return frames[-1].strip("\n")


def drawn(table: str) -> str:
    """Return the table as an SVG that asks for no font from elsewhere."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(table), soft_wrap=True)
    picture = console.export_svg(title="timerqueue run uptime.toml", unique_id="live-table")
    return re.sub(r"@font-face \{.*?\}", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    PICTURE.write_text(drawn(last_table(demo("20s"))), "utf-8")
