"""The pages of docs/reference are made from the code, and say what it says now."""

import subprocess
import sys
from pathlib import Path

import pytest

from kit import PATIENCE
from scheduler import MissedReason, Outcome

ROOT = Path(__file__).resolve().parents[3]
MAKE = ROOT / "docs" / "make"


@pytest.fixture
def prose(monkeypatch):
    """The module that turns docstrings into Markdown."""
    monkeypatch.syspath_prepend(str(MAKE))
    import prose  # noqa: PLC0415 - it lies beside the pages that it makes

    return prose


def test_each_page_says_what_the_code_says():
    """After a change: `python3 dev.py docs`."""
    done = subprocess.run(
        [sys.executable, str(MAKE), "--check"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_a_page_that_differs_is_named_with_the_remedy(tmp_path):
    """Who forgets to make the pages is told which command does it."""
    copy = tmp_path / "docs" / "make"
    copy.mkdir(parents=True)
    for file in MAKE.glob("*.py"):
        (copy / file.name).write_text(file.read_text("utf-8"), "utf-8")
    done = subprocess.run(
        [sys.executable, str(copy), "--check"], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "docs/reference/events.md differs from the code: run `python3 dev.py docs`" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("kind", [Outcome, MissedReason], ids=lambda kind: kind.__name__)
def test_each_outcome_and_each_reason_says_what_it_means(kind, prose):
    """A new reason without a sentence is a word that nobody can look up."""
    assert [member.name for member, text in prose.member_texts(kind) if not text] == []


def test_an_option_without_a_meaning_is_refused(prose):
    """It would be missing on the page, and nobody would notice."""

    def add(func, *, limit=5, **unknown):
        """Add it. `func`: what is called."""

    with pytest.raises(ValueError, match="says nothing of limit: write `name`: meaning"):
        prose.options(add, add.__doc__)


def test_options_may_share_a_meaning_and_a_line(prose):
    """As docstrings have them."""

    def add(first, second, third=None):
        """Add them.

        - `first`, `second`: numbers,
          one for each. `third`: a name.
        """

    assert prose.options(add, add.__doc__) == {
        "first": "Numbers, one for each.",
        "second": "Numbers, one for each.",
        "third": "A name.",
    }
    assert prose.call("add", add) == "add(first, second, third=None)"
