"""Programs of a page: each block of Python that begins with its name, such as `# jobs.py`, as a file."""

import re
from pathlib import Path
from textwrap import dedent

DOCS = Path(__file__).resolve().parents[3] / "docs"
BLOCK = re.compile(r"^(?P<indent>[ ]*)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\w[\w.]*\.py)\n")


def blocks_of(text):
    """Return the blocks of Python of a page."""
    return [dedent(match["code"]) for match in BLOCK.finditer(text)]


def named_blocks(text):
    """Return the blocks of a page that have a name, by name."""
    return {found[1]: code for code in blocks_of(text) if (found := NAME.match(code))}


def write_programs(page, folder):
    """Write the named programs of a page into a folder."""
    for name, code in named_blocks((DOCS / page).read_text("utf-8")).items():
        (folder / name).write_text(code, "utf-8")
