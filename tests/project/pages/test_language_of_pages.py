"""Pages can be understood at first reading: short sentences, nouns, tables whose cells are read at a glance.

The rules are those for docstrings (test_language.py), without what only code has. Decisions stay as they were written.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LEFT_OUT = {"ARCHITECTURE.md", "CHANGELOG.md"}  # the one is a map of files, the other has one line for each change
FOLDERS = ("", "benchmarks", "benchmarks/contenders", "docs", "docs/agent", "docs/howto", "docs/stores", "examples")
PAGES = [page for name in FOLDERS for page in sorted((ROOT / name).glob("*.md")) if page.name not in LEFT_OUT]

LONGEST_SENTENCE = 20
LONGEST_CELL = 15

MADE = re.compile(r"<!-- made.*?begin -->.*?<!-- end -->|<!--.*?-->", re.DOTALL)
FENCED = re.compile(r"^[ ]*```.*?^[ ]*```[ ]*$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"(?:[-*]|\d+\.) (?:\[ \] )?")
BANNED = re.compile(
    r"\b((is|are|was|were) (not )?to(?! (the|a|an|be)\b)|by then|so many|as many(?! as)|nobody(?!'s death)|somebody"
    r"|anybody|whoever|anew|beside|that is so|(those|ones?) (that|who|which|whose)"
    r"|who(?= (asks|comes|leaves|has|needs)\b))\b",
    re.IGNORECASE,
)


def blocks(text):
    """Yield each paragraph, each item and each cell of a page: whether it is a cell, and its text."""
    gathered = []
    for line in [*FENCED.sub("", MADE.sub("", text)).splitlines(), ""]:
        words = line.strip()
        is_row = words.startswith("|")
        ends = not words or is_row or words.startswith("#") or line.startswith("    ") or ITEM.match(words)
        if ends and gathered:
            yield False, " ".join(gathered)
            gathered = []
        if is_row and not set(words) <= set("|-: "):
            yield from ((True, cell.strip()) for cell in re.split(r"(?<!\\)\|", words.strip("|")))
        elif words and not is_row and not words.startswith("#") and not line.startswith("    "):
            gathered.append(ITEM.sub("", words, count=1) if ITEM.match(words) else words)


def plain(text):
    """Return a text as it is read aloud: links by their words, code as one word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`", "``", text).replace("**", "")


def findings(text):
    """Yield what is wrong with the sentences and cells of a page."""
    for is_cell, block in blocks(text):
        said = plain(block)
        if is_cell and len(said.split()) > LONGEST_CELL:
            yield f"{len(said.split())} words in a cell, at most {LONGEST_CELL}: {block!r}"
        for sentence in [] if is_cell else re.split(r"(?<=[.!?])[)\"”]? +", said):
            if len(sentence.split()) > LONGEST_SENTENCE:
                yield f"{len(sentence.split())} words, at most {LONGEST_SENTENCE}: {sentence!r}"
        if found := BANNED.search(said):
            yield f"{found[0]!r}: name the thing, or say when or how many: {block!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_sentence_is_short_and_names_things(page):
    """A reader who has never seen the project understands each sentence alone, at first reading."""
    found = list(findings(page.read_text("utf-8")))
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A job waits. It goes on.\n", 0),
        (f"{'word ' * 21}.\n", 1),
        (f"- an item\n- {'word ' * 19}.\n", 0),
        (f"| {'word ' * 16}| b |\n|---|---|\n", 1),
        (f"| {'word ' * 15}| b |\n", 0),
        (f"```text\n{'word ' * 40}\n```\n", 0),
        ("Whoever asks is told.\n", 1),
        ("A job is to run.\n", 1),
        ("`is to run` is code. The way is to the left.\n", 0),
        ("See [nobody](nobody.md).\n", 1),
    ],
)
def test_the_check_sees_what_it_looks_for(text, found):
    """The check above would be worth nothing if it let such sentences pass."""
    assert len(list(findings(text))) == found
