"""Links in the documents lead somewhere: to a file that is there, and to a heading that it has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("benchmarks", "docs", "examples", "src", "tests")
PAGES = [*sorted(ROOT.glob("*.md")), *(page for name in FOLDERS for page in sorted((ROOT / name).rglob("*.md")))]
CODE = re.compile(r"^[ ]*```.*?^[ ]*```[ ]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"^[ ]*```.*?^[ ]*```[ ]*$", re.MULTILINE | re.DOTALL)


def anchors(page):
    """Return the names by which the headings of a page are linked to."""
    headings = HEADING.findall(FENCED.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page):
    """Return the links of a page that lead nowhere."""
    found = LINK.findall(CODE.sub("", page.read_text("utf-8")))
    return [f"{path}#{name}" if name else path for path, name in found if not leads(page, path, name)]


def leads(page, path, name):
    """Say whether a link of a page leads somewhere."""
    there = (page.parent / path).resolve() if path else page
    return there.exists() and (not name or there.suffix != ".md" or name in anchors(there))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    """What is linked was moved, renamed or never written."""
    assert broken(page) == []


def test_each_decision_has_a_number_of_its_own():
    """And index.md has each."""
    names = [page.name for page in sorted((ROOT / "docs" / "decisions").glob("*.md"))]
    numbers = [name[:4] for name in names]
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert sorted(set(numbers)) == numbers
    assert [name for name in names if f"(decisions/{name})" not in index] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](b.md)", [("b.md", "")]),
        ("[a](b.md#c-d) and [e](#f)", [("b.md", "c-d"), ("", "f")]),
        ("[a](https://example.org)", []),
    ],
)
def test_links_are_found_as_a_reader_sees_them(text, found):
    """One that is overlooked is one that rots."""
    assert LINK.findall(text) == found


MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
ALL_FILES = [f"/{file.relative_to(ROOT).as_posix()}" for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]


def test_files_of_the_map_are_there():
    """A file that has moved takes its row along: a reader who is sent astray believes nothing else on the page."""
    named = set(re.findall(r"`([\w./]+\.py)`", MAP))
    assert {name for name in named if not any(file.endswith(f"/{name}") for file in ALL_FILES)} == set()


def folders_of_the_map():
    """Yield each folder of a table of folders, and the modules that its row names."""
    tables = re.findall(r"^### `(\w+)`\n(.*?)(?=^#|\Z)", MAP, re.MULTILINE | re.DOTALL)
    for package, text in tables:
        for folder, row in re.findall(r"^\| `([\w/]+)/` \| [^|]*\|(.*)\|$", text, re.MULTILINE):
            yield f"/src/{package}/{folder}/", re.findall(r"`(\w+)`", row)


def test_modules_of_the_map_are_there():
    """So do the modules that stand in the row of a folder."""
    rows = dict(folders_of_the_map())
    assert len(rows) > 30
    missing = [
        folder + name
        for folder, names in rows.items()
        for name in names
        if not any(f"{folder}{name}.py" in file or f"{folder}{name}/" in file for file in ALL_FILES)
    ]
    assert missing == []
