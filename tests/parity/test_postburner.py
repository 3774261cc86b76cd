"""Each scenario and weakness of Postburner's scheduler has its test here, as postburner.toml says: they all exist."""

import ast
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads(Path(__file__).with_name("postburner.toml").read_text("utf-8"))
ROWS = [(kind, row) for kind in ("scenario", "weakness") for row in TABLE[kind]]
SECTIONS = {
    "Watchdog": range(1, 14),
    "Pass": range(14, 27),
    "Grid and life cycle": range(27, 36),
    "Faults": range(36, 41),
}


@cache
def names_in(file):
    """Return the names of the tests in a file, None if there is no such file."""
    if not (ROOT / file).is_file():
        return None
    nodes = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize(("kind", "row"), ROWS, ids=[f"{kind} {row['number']}" for kind, row in ROWS])
def test_what_a_row_names_is_a_test(kind, row):
    """None of them is without one."""
    assert row["tests"], f"{kind} {row['number']} has no test"
    for each in row["tests"]:
        file, _, name = each.partition("::")
        assert name.startswith("test_")
        assert name in (names_in(file) or ()), f"there is no {each}"


def test_all_scenarios_and_weaknesses_are_there():
    """Forty and fourteen, each once, in their sections."""
    assert [row["number"] for row in TABLE["scenario"]] == list(range(1, 41))
    assert [row["number"] for row in TABLE["weakness"]] == list(range(1, 15))
    for section, numbers in SECTIONS.items():
        assert [row["number"] for row in TABLE["scenario"] if row["section"] == section] == list(numbers)
    told = [row["what"] for _, row in ROWS]
    assert len(told) == len(set(told))
