"""The floor plan: folders are small, and others see of each, as of each package, nothing but its face."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
MOST_FILES = 12

FOLDERS = sorted(folder for folder in SOURCE.rglob("*") if folder.is_dir() and (folder / "__init__.py").is_file())


def relative(path):
    """Name a folder or a file from below src."""
    return path.relative_to(SOURCE).as_posix()


@cache
def has_a_face(folder):
    """Tell whether the folder says what others may take of it."""
    return "__all__" in (folder / "__init__.py").read_text("utf-8")


def modules_imported(file):
    """Yield the absolute parts of each module that a file imports names from."""
    package = file.relative_to(SOURCE).parts[:-1]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield (*base, *(node.module.split(".") if node.module else ()))


def is_public(parts):
    """Tell whether users import that module by its own name, as they do each kind of store."""
    return not any(part.startswith("_") for part in parts) and parts[1:2] in {
        ("logs",),
        ("metrics",),
        ("otel",),
        ("queues",),
        ("stores",),
        ("testing",),
        ("web",),
    }


def files_of(folder):
    """List the names of a folder's files but for its face."""
    return sorted(each.name for each in folder.glob("*.py") if each.name != "__init__.py")


def test_a_folder_has_at_most_twelve_files():
    """More than that nobody takes in at a glance: it answers two questions."""
    found = {relative(each): files_of(each) for each in FOLDERS if len(files_of(each)) > MOST_FILES}
    assert found == {}


def test_a_folder_of_tests_has_at_most_twelve_files():
    """Who changes something finds its tests among few."""
    tests = SOURCE.parent / "tests"
    counts = Counter(file.parent.relative_to(tests).as_posix() for file in tests.rglob("*.py"))
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def imported_behind(file):
    """List what a file imports behind the face of another folder."""
    own = file.relative_to(SOURCE).parts[:-1]
    return [
        ".".join(parts)
        for parts in modules_imported(file)
        if not is_public(parts)
        for depth in range(1, len(parts))
        if (SOURCE.joinpath(*parts[:depth]) / "__init__.py").is_file()
        and has_a_face(SOURCE.joinpath(*parts[:depth]))
        and parts[:depth] != own[:depth]
    ]


def test_another_folder_is_imported_by_its_face():
    """What lies where in a folder is its own business: it can be moved without a change elsewhere."""
    found = {relative(file): imported_behind(file) for file in sorted(SOURCE.rglob("*.py"))}
    assert {file: modules for file, modules in found.items() if modules} == {}


def test_a_face_says_what_its_folder_offers():
    """Whoever opens a folder reads its question and its bounds first."""
    faces = {
        relative(each): ast.parse((each / "__init__.py").read_text("utf-8")) for each in FOLDERS if has_a_face(each)
    }
    assert [name for name, face in faces.items() if len((ast.get_docstring(face) or "").splitlines()) < 2] == []
