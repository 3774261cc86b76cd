"""A docstring stands alone: it names its subject in its first words, and does not lean on the one above it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "src").rglob("*.py"))
LEANING = re.compile(r"(It|What|The same|Those|Whoever|Somebody|That)\b")


def relative(file):
    """Name a file from below src."""
    return file.relative_to(ROOT / "src").as_posix()


def docstrings(tree):
    """Yield the name of each documented thing in a tree, and its docstring. A test's is a sentence about its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = getattr(node, "name", "the module")
            if (text := ast.get_docstring(node)) and not name.startswith("test_"):
                yield name, text


def test_a_docstring_names_its_subject_first():
    """Whoever meets it in help(), or in an editor, has not read what stands before it in the file."""
    found = [(relative(file), *each) for file in FILES for each in docstrings(ast.parse(file.read_text("utf-8")))]
    assert [(file, name) for file, name, text in found if LEANING.match(text)] == []
