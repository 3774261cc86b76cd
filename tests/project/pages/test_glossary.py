"""The glossary has one line for each word of ours, and other pages use no other word for the same idea."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "glossary.md"
ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.*)$", re.MULTILINE)
TERMS = """
    job schedule tick due attempt run subtask outcome lateness missed parked limit unit
    store record mark owed commit fence
    node part fleet shard owner lease epoch bury takeover handoff claim execution lend watchdog audit
    spec agent target check status incident channel message probe sample
"""
LONGEST = 20


def test_each_word_has_one_line():
    """A new word comes with its line; a word that is gone takes its line along."""
    assert sorted(word for word, _ in ENTRY.findall(PAGE.read_text("utf-8"))) == sorted(TERMS.split())


@pytest.mark.parametrize(("word", "meaning"), ENTRY.findall(PAGE.read_text("utf-8")))
def test_a_line_is_short_and_does_not_explain_a_word_by_itself(word, meaning):
    """Who looks a word up does not know it yet."""
    assert len(meaning.split()) <= LONGEST
    assert meaning.endswith(".")
    assert not re.match(rf"(an? |the )?{word}\b", meaning, re.IGNORECASE)
