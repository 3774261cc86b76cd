"""The line of each key of a TOML text, which tomllib does not tell."""

import tomllib

import pytest
from hypothesis import given, strategies as st

from uptime_agent.toml.lines import KeyLines

TOML = '''# a comment with [brackets] and "quotes"
title = "x = 1 # no comment" # [no.table]
a.b."c d" = 1

[table] # comment
multi = """
[not.a.table]
key = "inside"
\\""" still inside"""
literal = \'\'\'
x = 'y'
\'\'\'
list = [
  1, # one
  { x = 1, y = [2, 3] },
  [4, 5],
]
date = 1979-05-27 07:32:00
inline = { p = "}", 'q' = { r = 1 } }

[[check]]
name = "one"
  [check.headers]
  A = "1"
[[check]]
name = "two"
  [[check.inner]]
  z = 1
  [[check.inner]]
  z = 2
[ table . "sub table" ]
k = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("a", "b", "c d"), 3),
        (("table",), 5),
        (("table", "multi"), 6),
        (("table", "literal"), 10),
        (("table", "list"), 13),
        (("table", "list", 1, "y"), 15),
        (("table", "date"), 18),
        (("table", "inline", "q", "r"), 19),
        (("check", 0), 21),
        (("check", 0, "headers", "A"), 24),
        (("check", 1, "name"), 26),
        (("check", 1, "inner", 1, "z"), 30),
        (("table", "sub table", "k"), 32),
    ],
)
def test_the_line_of_a_key_is_found(path, line):
    """Through comments, strings of several lines, inline tables and tables within arrays."""
    assert KeyLines(TOML)[path] == line


def paths_of(value, path=()):
    """Yield the path of every key of parsed TOML."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from paths_of(inner, (*path, key))
    if isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths_of(inner, (*path, index))


def test_every_key_of_the_parsed_text_has_a_line():
    """The scanner and tomllib see the same keys."""
    assert set(paths_of(tomllib.loads(TOML))) <= set(KeyLines(TOML))


class Counted(str):
    """A text that knows how many of its characters somebody has looked through for line breaks."""

    __slots__ = ("looked_at",)

    def count(self, part, start=0, end=None):
        self.looked_at += (len(self) if end is None else end) - start
        return super().count(part, start, end)


def test_a_long_text_is_counted_once_for_all_keys():
    """The lines of ten thousand keys are right, and no part of the text is counted twice."""
    text = Counted("".join(f"# {n}\n\n[[check]]\nname = '{n}'\n'quoted' = {n}\n" for n in range(5_000)))
    text.looked_at = 0
    lines = KeyLines(text)
    assert text.looked_at <= len(text)
    expected = {(("check", n, key), 5 * n + at) for n in range(5_000) for at, key in ((4, "name"), (5, "quoted"))}
    assert expected <= set(lines.items())


PIECES = [
    "a = 1", "a.b = 'x'", "[a]", "[a.b]", "[[c]]", "[c.d]", "[[c.e]]", 'k = """', '"""', "k = '''", "'''", "# [x]",
    "l = [", "1,", "'],',", "]", 'm = { n = "#", o = [1] }', '"q q" = "\\""', "", "  'lit' = 1e5", "t = 07:32:00",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_whatever_tomllib_reads_is_scanned(lines):
    """No valid text makes the scanner fail or lose a key."""
    text = "\n".join(lines)
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = KeyLines(text)
    assert set(paths_of(parsed)) <= set(found)
    assert all(1 <= line <= len(lines) for line in found.values())
