"""Monitors of type http."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..foreign import Draft, ForeignTable, Hidden, Items, Mapped, plain_text, shown, take_body, take_headers, take_url
from .tls import take_tls

REDIRECTS: Final = 5
UP: Final = "100-399"

_PATH: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*")
_EXPRESSION: Final = re.compile(
    r"""\s*([A-Za-z_][\w.]*)\s*(==|!=|<=|>=|<|>)\s*("(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?|true|false)\s*"""
)
_RANGES: Final = {"gte": ">=", "gt": ">", "lte": "<=", "lt": "<"}


def take_http(draft: Draft, monitor: ForeignTable, url: str) -> None:
    """Take over what a monitor asks and expects of a URL."""
    take_url(draft, url, monitor.line_of("hosts" if "hosts" in monitor else "urls"))
    wanted = monitor.whole("max_redirects")
    draft.options["redirects"] = min(wanted, REDIRECTS)
    if wanted > REDIRECTS:
        draft.leave(f"max_redirects {wanted}: five are the most", monitor.line_of("max_redirects"))
    check = monitor.table("check")
    _take_request(draft, check.table("request"))
    if any([monitor.text("username"), monitor.text("password")]):  # both are taken
        draft.header("Authorization", Hidden("Authorization", "Basic and its username and password in base64"))
    _take_response(draft, check.table("response"))
    take_tls(draft, monitor)


def _take_request(draft: Draft, request: ForeignTable) -> None:
    if "method" in request:
        draft.put("method", request.text("method").upper(), request.line_of("method"))
    draft.lines |= {key: request.line_of(key) for key in ("headers", "body")}
    headers = request.table("headers")
    take_headers(draft, {name: headers.text(name) for name in headers})
    if body := request.text("body"):
        take_body(draft, body)


def _take_response(draft: Draft, response: ForeignTable) -> None:
    codes = [each for each in response.texts("status") if each != "0"]
    statuses = [int(each) if each.isdigit() else each for each in codes] or UP
    draft.put("expect_status", statuses, response.line_of("status"))
    headers = response.table("headers")
    if wanted := {name: headers.text(name) for name in headers}:
        draft.put("expect_headers", wanted, response.line_of("headers"))
    _take_patterns(draft, response)
    for each in response.tables("json"):
        each.take("description")
        _take_json(draft, each)
        each.rest()
        draft.left.update(each.losses)


def _take_patterns(draft: Draft, response: ForeignTable) -> None:
    """One positive expression must match, and no negative one."""
    body = response.of.values.get("body")
    whole = response.table("body") if isinstance(body, Mapped) else response
    positive = whole.lined("positive" if isinstance(body, Mapped) else "body")
    texts = [plain_text(pattern) for pattern, _ in positive]
    draft.lines |= dict.fromkeys(("contains", "regex"), whole.line_of("positive" if whole is not response else "body"))
    if len(texts) == 1 and texts[0] is not None:
        draft.options["contains"] = texts[0]
    elif len(positive) == 1:
        draft.options["regex"] = positive[0][0]
    elif positive:
        draft.options["regex"] = "|".join(f"(?:{pattern})" for pattern, _ in positive)
    for pattern, line in whole.lined("negative") if isinstance(body, Mapped) else ():
        text = plain_text(pattern)
        if text is None or draft.options.setdefault("not_contains", text) != text:
            draft.leave(f"check.response.body.negative {pattern} (see not_contains)", line)


def _take_json(draft: Draft, entry: ForeignTable) -> None:
    expression = entry.text("expression")
    found: list[str] | None = []
    if expression:
        parts = _EXPRESSION.fullmatch(expression)
        found = None if parts is None else [f"$.{parts[1]} {parts[2]} {parts[3]}"]
    elif "condition" in entry:
        found = _expectations(entry.take("condition"))
    if found is None:
        draft.leave(
            f"check.response.json: {expression or 'a condition that is no equals, range or has_fields'}", entry.line
        )
    elif found:
        draft.options["json"] = [*draft.options.get("json", []), *found]


def _expectations(condition: Any) -> list[str] | None:
    if not isinstance(condition, Mapped):
        return None
    found: list[str] = []
    for name, value in condition.values.items():
        read = _CONDITIONS.get(name)
        below = None if read is None else read(value)
        if below is None:
            return None
        found += below
    return found


def _equals(value: Any) -> list[str] | None:
    leaves = _leaves(value, "") if isinstance(value, Mapped) else [("", None)]
    if not all(isinstance(each, (bool, int, float, str)) for _, each in leaves):
        return None
    return [f"{_place(path)} == {_literal(each)}" for path, each in leaves]


def _range(value: Any) -> list[str] | None:
    found: list[str] = []
    for path, each in _leaves(value, "") if isinstance(value, Mapped) else [("", None)]:
        place, _, sign = path.rpartition(".")
        if sign not in _RANGES or not place or isinstance(each, bool) or not isinstance(each, (int, float)):
            return None
        found.append(f"{_place(place)} {_RANGES[sign]} {each}")
    return found


def _has_fields(value: Any) -> list[str] | None:
    fields: list[Any] = value.values if isinstance(value, Items) else [None]
    return [_place(each) for each in fields] if all(isinstance(each, str) for each in fields) else None


def _all_of(value: Any) -> list[str] | None:
    each = [_expectations(condition) for condition in value.values] if isinstance(value, Items) else [None]
    return None if None in each else [expected for below in each for expected in below or ()]


_CONDITIONS: Final[Mapping[str, Callable[[Any], list[str] | None]]] = {
    "equals": _equals,
    "range": _range,
    "has_fields": _has_fields,
    "and": _all_of,
}


def _leaves(table: Mapped, path: str) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, each in table.values.items():
        place = f"{path}.{name}" if path else name
        found += _leaves(each, place) if isinstance(each, Mapped) else [(place, each)]
    return found


def _place(path: str) -> str:
    parts = path.split(".")
    return "$" + "".join(
        f".{each}" if each[:1].isalpha() and _PATH.fullmatch(each) else f"['{each}']" for each in parts
    )


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else shown(value) if isinstance(value, str) else str(value)
