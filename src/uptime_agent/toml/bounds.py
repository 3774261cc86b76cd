"""Bounds of a TOML text: keys of very many parts, and brackets very deep inside each other, are not read.

Python's reader takes time by the square of the one, and Python's stack ends at the other. It reads a text from its
beginning to its first mistake; up to there the tokens below are those of TOML. Behind it they may be others, and then
the text is refused anyway, for the one reason or the other.
"""

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
"""Tokens. Each takes all that it has looked at, so a text is looked at once; one without an end goes to the end. Most
lines of a configuration are a key and a plain value, and one token.
"""


def over(text: str) -> tuple[int, str] | None:
    """Find what is over the bounds: its line, 0 for the whole text, and what it is. None: nothing is."""
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
