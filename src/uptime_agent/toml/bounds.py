"""Refuse keys of very many parts, which take Python quadratic time, and very deep brackets, which exhaust its stack."""

from __future__ import annotations

import re
from typing import Final

MOST_PARTS: Final = 32
DEEPEST: Final = 32

_TOKEN: Final = re.compile(
    r"""
      (?P<line> ^ [A-Za-z0-9_-]++ [ ]= [ ] (?: "[^"\\\n]*+" | [0-9a-z]++ ) $ )
    | (?P<part> \"\"\" (?: [^"\\] | \\. | "(?!"") )*+ "{0,5}
              | ''' (?: [^'] | '(?!'') )*+ '{0,5}
              | " (?: [^"\\\n] | \\. )*+ "?
              | ' [^'\n]*+ '?
              | [A-Za-z0-9_-]++ )
    | (?P<blank> [ \t]++ )
    | (?P<dot> \. )
    | (?P<opens> [\[{] )
    | (?P<closes> [\]}] )
    | \#[^\n]*+
    | [^ \t\n"'#.\[\]{}A-Za-z0-9_-]++
    | .
    """,
    re.DOTALL | re.VERBOSE | re.MULTILINE,
)
"""Matching is linear: a token takes everything it looked at. Most lines are one token."""


def over(text: str) -> tuple[int, str] | None:
    """The line (0: all) and name of an excess."""
    parts = depth = 0
    is_dotted = False
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "part":
                parts = parts + 1 if is_dotted else 1
                is_dotted = False
                if parts > MOST_PARTS:
                    return text.count("\n", 0, token.start()) + 1, f"a key has more than {MOST_PARTS} parts"
            case "dot":
                is_dotted = parts > 0
            case "blank":
                pass
            case "opens":
                depth, is_dotted = depth + 1, False
                if depth > DEEPEST:
                    return 0, f"brackets are nested too deeply: there are more than {DEEPEST} inside each other"
            case "closes":
                depth, is_dotted = max(depth - 1, 0), False
            case _:
                is_dotted = False
    return None
