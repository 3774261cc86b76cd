"""Pages that say which test shows what: each test that they name is there, and each row names one or says why not."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import hostile_servers

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("docs/threats.md", "tests/parity/heartbeat.md", "tests/uptime_agent/promises.md")
NAMED = re.compile(r"`([\w/.-]+\.py)::(\w+)`")
WITHOUT = ("no counterpart:", "not offered:", "by hand:")
"""What a row may say in the place of a test, and then why."""


def rows(page):
    """Yield the rows of all tables of a page, without their heads."""
    before = ""
    for line in (ROOT / page).read_text("utf-8").splitlines():
        if line.startswith("|") and before.startswith("|") and not set(line) <= set("|- "):
            yield line
        before = line


@cache
def functions_of(file):
    """Name all functions and methods of a file of tests."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


@pytest.mark.parametrize("page", PAGES)
def test_each_test_that_a_page_names_is_there(page):
    """Whoever renames a test finds the pages that promise it."""
    named = NAMED.findall((ROOT / page).read_text("utf-8"))
    missing = [
        f"{file}::{name}" for file, name in named if not (ROOT / file).is_file() or name not in functions_of(file)
    ]
    assert named
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_each_row_names_a_test_or_says_why_there_is_none(page):
    """Nothing is promised that nobody looks at."""
    bare = [row for row in rows(page) if not NAMED.search(row) and not any(words in row for words in WITHOUT)]
    assert bare == []


def test_each_hostile_server_is_on_the_page():
    """One that is new says what it does, and which test stands up to it."""
    text = (ROOT / "tests/uptime_agent/promises.md").read_text("utf-8")
    assert [each.__name__ for each in hostile_servers.MALICE if not re.search(rf"\b{each.__name__}\b", text)] == []
