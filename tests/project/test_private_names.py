"""Each package has a face: the others import its public names, and nothing that begins with an underscore."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
PACKAGES = sorted(each.parent.name for each in SOURCE.glob("*/__init__.py"))


def imported(tree, parts):
    """Yield each name that a file of ours imports, in full. `parts`: those of the package that the file lies in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parts[: len(parts) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            yield from (f"{module}.{each.name}" for each in node.names)


def private(tree, parts):
    """List what a file takes of another of our packages that is not public there."""
    return sorted(
        name
        for name in imported(tree, parts)
        for package, *rest in [name.split(".")]
        if package in PACKAGES and package != parts[0] and any(each.startswith("_") for each in rest)
    )


def test_no_package_imports_private_names_of_another():
    """What begins with an underscore may be gone tomorrow, and its package does not look who took it."""
    files = sorted(SOURCE.rglob("*.py"))
    found = {
        file.relative_to(SOURCE).as_posix(): private(
            ast.parse(file.read_text("utf-8")), file.relative_to(SOURCE).parts[:-1]
        )
        for file in files
    }
    assert PACKAGES == ["schedule", "scheduler", "timerqueue", "uptime_agent"]
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from schedule._errors import shown", ["schedule._errors.shown"]),
        ("import timerqueue._heap", ["timerqueue._heap"]),
        ("from timerqueue import _heap as heap", ["timerqueue._heap"]),
        ("from ...schedule._errors import shown", ["schedule._errors.shown"]),
        ("def f():\n    from schedule import _errors", ["schedule._errors"]),
        ("from schedule import Every\nfrom scheduler.stores import Store", []),
        ("from .._values import Outcome\nfrom . import _words", []),
        ("from attr import _make\nimport os._exit", []),
    ],
)
def test_each_way_to_a_private_name_is_seen(code, found):
    """The test above would be worth nothing if another spelling got past it."""
    assert private(ast.parse(code), ("scheduler", "_runs")) == found
