"""The Python in README.md and docs/ runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from kit import PATIENCE
from pages_of_programs import write_programs

ROOT = Path(__file__).resolve().parents[3]

# A block that cannot run on its own has a comment right above it: <!-- not run: reason -->
BLOCK = re.compile(
    r"(?:^[ ]*<!-- not run: (?P<reason>\S[^\n]*?) -->[ ]*\n\s*)?"
    r"^(?P<indent>[ ]*)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


def blocks(text):
    """Yield (line, code, reason not to run it or None) for each Python block of a page."""
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        yield line, dedent(match["code"]), match["reason"]


def pages():
    """Return the pages whose code a reader may copy."""
    return [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.exists()]


def documented_programs():
    """Yield one case per Python block, named by page and line."""
    for page in pages():
        for line, code, reason in blocks(page.read_text("utf-8")):
            marks = [pytest.mark.skip(reason=reason)] if reason else []
            yield pytest.param(page, line, code, id=f"{page.relative_to(ROOT).as_posix()}:{line}", marks=marks)


@pytest.mark.parametrize(("page", "line", "code"), list(documented_programs()))
def test_a_documented_program_runs(page, line, code, tmp_path):
    """What a reader copies works, beside the named programs of the page; line numbers are those of the page."""
    write_programs(page, tmp_path)
    program = tmp_path / "program.py"
    program.write_text("\n" * (line - 1) + code, "utf-8")
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_shows_a_program_that_runs():
    """A README without code leaves the reader to guess, and the test above without cases."""
    readme = ROOT / "README.md"
    assert readme.exists(), "there is no README.md"
    assert [line for line, _, reason in blocks(readme.read_text("utf-8")) if reason is None] != []


def test_the_readme_compares_with_figures_that_were_measured():
    """Each number of three digits or more in that paragraph stands in the tables of benchmarks/README.md."""
    readme, tables = ((ROOT / page).read_text("utf-8") for page in ("README.md", "benchmarks/README.md"))
    (claim,) = re.findall(r"Why not APScheduler\?\*\*(.*?)\n\n", readme, re.DOTALL)
    figures = re.findall(r"\d[\d,]{2,}", claim)
    assert len(figures) > 3
    measured = set(re.findall(r"\d[\d,]*", tables))
    assert [figure for figure in figures if figure.rstrip(",") not in measured] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```python\n1\n```\n", [(2, "1\n", None)]),
        ("text\n\n```python\n1\n```\n\n```python\n2\n```\n", [(4, "1\n", None), (8, "2\n", None)]),
        ("<!-- not run: needs a server -->\n```python\n1\n```\n", [(3, "1\n", "needs a server")]),
        ("<!-- not run: needs a server -->\n\n```python\n1\n```\n", [(4, "1\n", "needs a server")]),
        ("<!-- not run: -->\n```python\n1\n```\n", [(3, "1\n", None)]),
        (
            "<!-- not run: first only -->\n```python\n1\n```\n```python\n2\n```\n",
            [(3, "1\n", "first only"), (6, "2\n", None)],
        ),
        ("1. step\n   ```python\n   if 1:\n       2\n   ```\n", [(3, "if 1:\n    2\n", None)]),
        ("```toml\na = 1\n```\n", []),
        ("```console\n$ python\n```\n", []),
    ],
)
def test_blocks_are_found_as_a_reader_sees_them(text, found):
    """A block that is overlooked is a block that rots."""
    assert list(blocks(text)) == found
