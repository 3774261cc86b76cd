"""Make the pages of docs/reference from the code. `--check` writes nothing, and names the pages that differ."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from of_command_line import command_line_page
from of_metrics import metrics_page
from of_scheduler import errors_page, events_page, job_page, scheduler_page
from of_stores import store_page
from of_values import values_page

FOLDER = Path(__file__).resolve().parents[1] / "reference"
MADE = "<!-- made by `python3 dev.py docs`: change the docstrings -->"
PAGES: Mapping[str, Callable[[], str]] = {
    "scheduler.md": scheduler_page,
    "job.md": job_page,
    "events.md": events_page,
    "errors.md": errors_page,
    "values.md": values_page,
    "command-line.md": command_line_page,
    "metrics.md": metrics_page,
    "store.md": store_page,
}


def main(arguments: list[str]) -> int:
    """Write all pages, or check them. Return the exit code: 1 if a page differs from the code."""
    made = {FOLDER / name: f"{MADE}\n\n{page()}\n" for name, page in PAGES.items()}
    if arguments != ["--check"]:
        FOLDER.mkdir(exist_ok=True)
        for file, text in made.items():
            file.write_text(text, "utf-8")
        return 0
    stale = {*FOLDER.glob("*.md")} - made.keys()
    wrong = [file.name for file, text in made.items() if not file.exists() or file.read_text("utf-8") != text]
    for name in sorted([*wrong, *(file.name for file in stale)]):
        print(f"docs/reference/{name} differs from the code: run `python3 dev.py docs`")
    return int(bool(wrong or stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
