"""What broke elsewhere on many machines, and the faults to bear: for each fleet.toml names tests, which all exist."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("fleet.toml").read_text("utf-8"))
ROWS = [(kind, row) for kind in ("broke", "fault") for row in TABLE[kind]]


@cache
def names_in(file):
    """Return the names of the tests in a file, none if there is no such file."""
    if not (ROOT / file).is_file():
        return frozenset()
    nodes = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=[f"{kind} {row['number']}" for kind, row in ROWS])
def test_what_a_row_names_is_a_test(kind, row):
    """None of them is without one."""
    assert row["tests"], f"{kind} {row['number']} has no test"
    named = [each.partition("::") for each in row["tests"]]
    assert [name for file, _, name in named if not name.startswith("test_") or name not in names_in(file)] == []


def test_each_row_is_there_once():
    """They are numbered from one on. What broke elsewhere says where it was told."""
    for kind in ("broke", "fault"):
        assert [row["number"] for row in TABLE[kind]] == list(range(1, len(TABLE[kind]) + 1))
    told = [row["what"] for _, row in ROWS]
    assert len(told) == len(set(told))
    assert all(row["thread"] for row in TABLE["broke"])
