"""Data is never code: nothing in src/ unpickles, evaluates, imports by a name from outside, or asks a shell."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
FORBIDDEN = {
    *("pickle", "cPickle", "marshal", "shelve", "dill", "eval", "exec", "compile", "__import__", "import_module"),
    *("system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell", "execvp", "spawnlp"),
}
ALLOWED = {
    ("scheduler/testing/_simulate.py", "import_module"),  # of a name that stands there
    ("uptime_agent/options.py", "import_module"),  # of the module that the operator names on the command line
}
FILES = sorted(SOURCE.rglob("*.py"))


def relative(file):
    """Name a file from below src/."""
    return file.relative_to(SOURCE).as_posix()


def names_in(tree):
    """Yield each name that code uses, imports, or reaches as an attribute of a module; and shells by their keyword."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="eval" | "exec" | "compile" | "__import__" | "import_module" as name):
                yield name
            case ast.Attribute(
                value=ast.Name(id="os" | "subprocess" | "importlib" | "asyncio" | "builtins"), attr=name
            ):
                yield name
            case ast.Import(names=found) | ast.ImportFrom(names=found):
                yield from (part for each in found for part in each.name.split("."))
            case ast.keyword(arg="shell", value=value) if not (
                isinstance(value, ast.Constant) and value.value is False
            ):
                yield "shell"


def test_no_source_makes_code_of_data():
    """Whoever writes to a store, answers a check or edits a configuration decides what is asked, not what runs."""
    named = {(relative(file), name) for file in FILES for name in names_in(ast.parse(file.read_text("utf-8")))}
    assert {(file, name) for file, name in named if name in FORBIDDEN | {"shell"}} - ALLOWED == set()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from importlib import import_module",
        "importlib.import_module(name)",
        "eval(x)",
        "os.system(x)",
        "run(x, shell=True)",
        "run(x, shell=is_shell)",
        "__import__(x)",
    ],
)
def test_each_way_to_code_is_seen(text):
    """Or the test above would show nothing."""
    assert set(names_in(ast.parse(text))) & (FORBIDDEN | {"shell"})
