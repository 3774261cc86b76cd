"""Each scenario, defect and thread of pgEdge's collector has its test here, as pgedge.toml says: they all exist."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("pgedge.toml").read_text("utf-8"))
ROWS = [row for kind in ("scenario", "defect", "thread") for row in TABLE[kind]]
SECTIONS = "Configuration|Delay and loop|Execute|Store|Reload|Pools|Partitions|Hashing|Stopping".split("|")


@cache
def names_in(file):
    """Return the names of the tests in a file, None if there is no such file."""
    if not (ROOT / file).is_file():
        return None
    nodes = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["what"])
def test_what_a_row_names_is_there(row):
    """A row without a test says why there is none."""
    assert row.get("tests") or row.get("otherwise")
    for each in row.get("tests", ()):
        file, _, name = each.partition("::")
        assert name in (names_in(file) or ()), f"there is no {each}"


def test_the_table_is_whole():
    """All sections of their tests, all 22 defects and all five threads; and nothing stands there twice."""
    assert list(dict.fromkeys(row["section"] for row in TABLE["scenario"])) == SECTIONS
    assert [row["number"] for row in TABLE["defect"]] == list(range(1, 23))
    assert len(TABLE["thread"]) == 5
    told = [(row.get("section"), row["what"]) for row in ROWS]
    assert len(told) == len(set(told))
    assert all(row.get("tests") for row in TABLE["defect"] + TABLE["thread"])
