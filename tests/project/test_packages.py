"""What gets installed: our four packages and nobody else's, typed, with lists of public names that hold."""

import ast
import importlib
import json
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
MOVED = "scheduler.agent"
"""A module that says, when it is imported, where its parts are."""

PACKAGES = ("schedule", "scheduler", "timerqueue", "uptime_agent")


def expected_home():
    """Return where the packages must come from: the checkout when installed as editable, else where the wheel went."""
    try:
        distribution = metadata.distribution("timerqueue")
    except metadata.PackageNotFoundError:
        pytest.fail("timerqueue is not installed here: run the tests with `python3 dev.py test`")
    origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return SOURCE
    return Path(distribution.locate_file("")).resolve()


def public_modules():
    """Yield the dotted names of modules that users import from: of the agent, the faces of its folders."""
    for file in sorted(SOURCE.rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        private = any(part.startswith("_") for part in name.split("."))
        if not private and (parts[0] != "uptime_agent" or parts[-1] == "__init__") and has_code(file) and name != MOVED:
            yield name


def has_code(file):
    """Tell whether the file holds more than a docstring."""
    body = ast.parse(file.read_text("utf-8")).body
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in body)


def in_order_of_kind(name):
    """Sort as ruff's RUF022 does: constants, then classes, then the rest."""
    return (not name.isupper(), not name[0].isupper(), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_imported_from_our_distribution(package):
    """PyPI's `schedule` and `scheduler`, or a folder of tests of that name, would be found here."""
    found = Path(importlib.import_module(package).__file__).resolve()
    assert found == expected_home() / package / "__init__.py"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_owns_files_in_our_packages(package):
    """Two owners of one folder overwrite each other without a word from pip."""
    owners = set(metadata.packages_distributions().get(package, ()))
    installed_as_editable = expected_home() == SOURCE  # pip then records no files of ours
    assert owners == (set() if installed_as_editable else {"timerqueue"})


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(package):
    """Without py.typed a type checker treats all of a package as Any."""
    assert (Path(importlib.import_module(package).__file__).parent / "py.typed").is_file()


@pytest.mark.parametrize("name", list(public_modules()))
def test_public_names_are_sorted_and_exist(name):
    """Each public module lists its names once, in ruff's order, and each can be imported."""
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] in PACKAGES:
            raise
        pytest.skip(f"needs {error.name}, which is not installed")
    names = module.__all__
    assert list(names) == sorted(set(names), key=in_order_of_kind)
    assert [each for each in names if not hasattr(module, each)] == []


@pytest.mark.parametrize("name", [MOVED, f"{MOVED}.checks"])
def test_a_module_that_moved_says_where_to(name):
    """Who has written a kind of check reads in one line what to change."""
    with pytest.raises(ImportError, match=r"import uptime_agent\.checks in place of"):
        importlib.import_module(name)


@pytest.mark.parametrize(
    ("module", "former", "present"),
    [
        ("scheduler.stores", "Rightful", "Assignment"),
        ("scheduler.stores", "Shares", "OwnedShards"),
        ("scheduler.testing.queues", "Opened", "OpenQueue"),
    ],
)
def test_a_public_name_that_has_changed_is_there_as_before(module, former, present):
    """A program that imports it goes on."""
    found = importlib.import_module(module)
    assert getattr(found, former) is getattr(found, present)
    assert {former, present} <= set(found.__all__)
