"""query_response of a module as a dialogue."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, Final

from ..foreign import Draft, ForeignTable, plain_text, take_said, wildcard

_GROUP: Final = re.compile(r"\$(?:\{\w+\}|\w+)")
_SPECIAL: Final = re.compile(r"[\\()\[\]{}|+?*^$.]")
_HIGHEST: Final = 0x7F


def take_dialogue(draft: Draft, options: ForeignTable) -> None:
    """Take steps over, up to an impossible one: a part is better than another dialogue."""
    steps: list[dict[str, Any]] = []
    signs_in = is_cut = False
    for table in options.tables("query_response"):
        if not is_cut:
            found, signs_in = _steps(draft, table, signs_in=signs_in)
            is_cut = found is None
            steps += found or []
        if is_cut:
            draft.leave("query_response from there on", table.line)
            continue
        table.rest()
        draft.left.update(table.losses)
    if steps:
        draft.put("dialogue", steps, options.line_of("query_response"))


def _steps(draft: Draft, table: ForeignTable, *, signs_in: bool) -> tuple[list[dict[str, Any]] | None, bool]:
    steps: list[dict[str, Any]] = []
    expected, said = table.take("expect"), table.take("send")
    wanted = table.take("expect_bytes")
    if expected:
        steps.append(_expected(draft, str(expected), table.line_of("expect")))
    if wanted:
        text = _text(wanted)
        if text is None or "*" in text:
            draft.leave("the key expect_bytes: bytes that are no ASCII", table.line_of("expect_bytes"))
            return None, signs_in
        steps.append({"expect": text})
    if said:
        text, line = _text(said), table.line_of("send")
        if text is None or not isinstance(said, (str, bytes, int, float)):
            draft.leave("the key send: bytes that are no ASCII", line)
            return None, signs_in
        if expected and _GROUP.search(text):
            draft.leave(f"the key send: {text}, in which a part of the answer is repeated", line)
            return None, signs_in
        text, signs_in = take_said(draft, text if isinstance(said, bytes) else f"{text}\n", line, signs_in=signs_in)
        steps.append({"send": text})
    if table.flag("starttls"):
        steps.append({"starttls": True})
    return steps, signs_in


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return None if any(each > _HIGHEST for each in value) else value.decode("ascii")
    return str(value)


def _expected(draft: Draft, pattern: str, line: int) -> dict[str, Any]:
    plain = plain_text(pattern)
    if plain is not None and "*" not in plain:
        return {"expect": plain}
    whole = wildcard(pattern)
    if whole is not None:
        return {"expect": whole}
    if find_spec("re2") is not None:
        return {"regex": pattern}
    draft.leave(f'expect {pattern}: takes pip install "timerqueue[regex]"; a plain part of it is looked for', line)
    return {"expect": max(_SPECIAL.split(pattern), key=len) or "\n"}
