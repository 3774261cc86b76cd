"""Conditions of Gatus: "[STATUS] == 200" and its like, as options of a check."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .draft import Draft

_CONDITION: Final = re.compile(r"\s*(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+?)\s*", re.DOTALL)
_CALL: Final = re.compile(r"(any|pat|has|len)\((.*)\)", re.DOTALL)
_OF_BODY: Final = re.compile(r"\[BODY\]((?:\.[\w-]+|\[[0-9]+\])+)")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_HIGHEST: Final = 599
_LOWEST: Final = 100


def take_conditions(draft: Draft, conditions: list[str]) -> None:
    """Take conditions over, and leave those that have no counterpart. Without one of the status any will do."""
    if draft.url.startswith("http") and not any("[STATUS]" in each for each in conditions):
        draft.options["expect_status"] = f"{_LOWEST}-{_HIGHEST}"
    for condition in conditions:
        found = _CONDITION.fullmatch(condition)
        if found is None or not _take(draft, *found.groups()):
            draft.leave(f"the condition {condition}")


def _take(draft: Draft, what: str, sign: str, value: str) -> bool:
    """Take one condition over. False: there is no such option."""
    take = _TAKEN.get(what)
    return take(draft, sign, value) if take is not None else _take_body_path(draft, what, sign, value)


def _take_status(draft: Draft, sign: str, value: str) -> bool:
    call = _CALL.fullmatch(value)
    if call is not None and call[1] == "any" and sign == "==":
        codes = [each.strip() for each in call[2].split(",")]
        draft.options["expect_status"] = [int(each) for each in codes if each.isdigit()]
        return all(each.isdigit() for each in codes)
    if not value.isdigit():
        return False
    code = int(value)
    ranges = {"==": (code, code), "<": (_LOWEST, code - 1), "<=": (_LOWEST, code)}
    ranges |= {">": (code + 1, _HIGHEST), ">=": (code, _HIGHEST)}
    if sign not in ranges:
        return False
    low, high = ranges[sign]
    draft.options["expect_status"] = low if low == high else f"{low}-{high}"
    return True


def _take_connected(_draft: Draft, sign: str, value: str) -> bool:
    return (sign, value) == ("==", "true")


def _take_response_time(draft: Draft, sign: str, value: str) -> bool:
    if sign not in {"<", "<="} or not value.isdigit():
        return False
    draft.options["degraded_above"] = f"{value}ms"
    return True


def _take_certificate(draft: Draft, sign: str, value: str) -> bool:
    if sign not in {">", ">="}:
        return False
    draft.options["cert_expires_within"] = value
    return True


def _take_body(draft: Draft, sign: str, value: str) -> bool:
    if draft.url.startswith("dns:"):
        draft.options["answers"] = [value]
        return sign == "==" and _CALL.fullmatch(value) is None
    call = _CALL.fullmatch(value)
    if call is not None and call[1] == "pat":
        text = call[2].strip("*")
        if call[2] != f"*{text}*" or "*" in text or "?" in text:
            return False
        key = {"==": "contains", "!=": "not_contains"}.get(sign)
        return key is not None and _set_once(draft, key, text)
    return call is None and sign == "==" and _set_once(draft, "regex", rf"\A{re.escape(value)}\Z")


def _take_rcode(draft: Draft, sign: str, value: str) -> bool:
    draft.options["rcode"] = value
    return sign == "=="


def _take_body_path(draft: Draft, what: str, sign: str, value: str) -> bool:
    path, call = _OF_BODY.fullmatch(what), _CALL.fullmatch(what)
    if (
        call is not None
        and call[1] == "has"
        and (path := _OF_BODY.fullmatch(call[2]))
        and (sign, value) == ("==", "true")
    ):
        return _expect_json(draft, f"${path[1]}")
    if path is None or _CALL.fullmatch(value) is not None:
        return False
    is_plain = _NUMBER.fullmatch(value) is not None or value in {"true", "false", "null"}
    shown = value if is_plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _expect_json(draft, f"${path[1]} {sign} {shown}")


def _expect_json(draft: Draft, expectation: str) -> bool:
    draft.options.setdefault("json", []).append(expectation)
    return True


def _set_once(draft: Draft, key: str, value: str) -> bool:
    """Set an option that holds one text. False: it holds another already."""
    return bool(draft.options.setdefault(key, value) == value)


_TAKEN: Final[dict[str, Callable[[Draft, str, str], bool]]] = {
    "[STATUS]": _take_status,
    "[CONNECTED]": _take_connected,
    "[RESPONSE_TIME]": _take_response_time,
    "[CERTIFICATE_EXPIRATION]": _take_certificate,
    "[BODY]": _take_body,
    "[DNS_RCODE]": _take_rcode,
}
