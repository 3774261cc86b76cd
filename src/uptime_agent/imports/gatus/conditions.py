"""Conditions of Gatus, such as "[STATUS] == 200", as options of a check. All must hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..foreign import Draft, shown
from .status import CODES, as_option, fitting

_CONDITION: Final = re.compile(r"\s*(.+?)\s*(==|!=|<=|>=|<|>)\s*(.*?)\s*", re.DOTALL)
_CALL: Final = re.compile(r"(any|pat|has|len)\((.*)\)", re.DOTALL)
_OF_BODY: Final = re.compile(r"\[BODY\]((?:\.[\w-]+|\[[0-9]{1,9}\])+)")
_PART: Final = re.compile(r"\.([\w-]+)|(\[[0-9]+\])")
_PLAIN_MEMBER: Final = re.compile(r"[^\W\d][\w-]*")
_NUMBER: Final = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]+)?")
_PART_OF_LENGTH: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|m|h)")
_LENGTH: Final = re.compile(rf"(?:{_PART_OF_LENGTH.pattern})+")
_UNITS: Final = {"ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_SECOND: Final = 1e3
_MIRRORED: Final = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WORDS: Final = ("true", "false")
_SPACES: Final = r"\s*"


def take_conditions(draft: Draft, conditions: Iterable[tuple[str, int | None]]) -> None:
    """Take conditions over, each with its line. Without a condition on the status, any status will do."""
    found = _Conditions(draft)
    for condition, line in conditions:
        why = found.why_not(condition)
        if why is not None:
            draft.leave(f"the condition {condition}{f': {why}' if why else ''}", line)
    found.end()


class _Conditions:
    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._options = draft.options
        self._is_web = str(draft.url).startswith("http")
        self._is_step = draft.kind == "check.step"
        self._codes = frozenset(CODES)
        self._fastest: float | None = None
        self._lengths: dict[str, float] = {}
        self._take: Mapping[str, Callable[[str, str], str | None]] = {
            "[STATUS]": self._status,
            "[CONNECTED]": self._connected,
            "[RESPONSE_TIME]": self._response_time,
            "[CERTIFICATE_EXPIRATION]": self._certificate,
            "[DOMAIN_EXPIRATION]": self._domain,
            "[BODY]": self._body,
            "[DNS_RCODE]": self._rcode,
        }

    def why_not(self, condition: str) -> str | None:
        """Take a condition, or say why not: "" if it has no counterpart."""
        found = _CONDITION.fullmatch(condition)
        if found is None or "[CONTEXT]" in condition:
            return ""
        what, sign, value = found.groups()
        if "[" in value and "[" not in what and not value.startswith("any("):
            what, sign, value = value, _MIRRORED[sign], what
        take = self._take.get(what.upper())
        return take(sign, value) if take is not None else self._path(what, sign, value)

    def end(self) -> None:
        if self._is_web:
            self._options["expect_status"] = as_option(self._codes)

    def _status(self, sign: str, value: str) -> str | None:
        codes = fitting(sign, value)
        if codes is None:
            return ""
        if not self._is_web:
            return "is for http checks"
        if not self._codes & codes:
            return "no status fits it and those before it"
        self._codes &= codes
        return None

    def _connected(self, sign: str, value: str) -> str | None:
        if (sign, value.lower()) in {("==", "true"), ("!=", "false")}:
            return None
        if (sign, value.lower()) in {("==", "false"), ("!=", "true")}:
            self._draft.is_dropped = True
            return "the check is left out: it would be up here when it was down there"
        return ""

    def _response_time(self, sign: str, value: str) -> str | None:
        milliseconds = _milliseconds(value)
        if sign not in {"<", "<="} or not milliseconds or self._is_step:
            return ""
        if self._fastest is None or milliseconds < self._fastest:
            self._fastest = milliseconds
            self._options["degraded_above"] = (
                f"{milliseconds / _SECOND:.15g}s" if milliseconds >= _SECOND else f"{milliseconds:.15g}ms"
            )
        return "slower is degraded here, not down"

    def _certificate(self, sign: str, value: str) -> str | None:
        if self._longest("cert_expires_within", sign, value) is not None:
            return ""
        return "sooner is degraded here, not down"

    def _domain(self, sign: str, value: str) -> str | None:
        return self._longest("down_within", sign, value)

    def _longest(self, key: str, sign: str, value: str) -> str | None:
        milliseconds = _milliseconds(value)
        if sign not in {">", ">="} or not milliseconds or (key == "down_within" and self._is_step):
            return ""
        if milliseconds > self._lengths.get(key, 0.0):
            self._lengths[key] = milliseconds
            self._options[key] = value if value[-1].isalpha() else f"{value}ms"
        return None

    def _body(self, sign: str, value: str) -> str | None:
        if str(self._draft.url).startswith("dns:"):
            return self._answers(sign, value)
        call = _CALL.fullmatch(value)
        if call is None:
            return self._once(("regex",), _whole(re.escape(value))) if sign == "==" else ""
        if call[1] == "any" and sign == "==":
            texts = "|".join(re.escape(each.strip()) for each in call[2].split(","))
            return self._once(("regex",), _whole(f"(?:{texts})"))
        return self._pattern(sign, call[2]) if call[1] == "pat" else ""

    def _pattern(self, sign: str, pattern: str) -> str | None:
        text = pattern.strip("*")
        if not text:
            return None if sign == "==" and pattern else ""
        is_within = pattern.startswith("*") and pattern.endswith("*") and not set(text) & set("*?[\\")
        if sign == "!=":
            return self._once(("not_contains",), text) if is_within else ""
        if sign != "==" or set(pattern) & set("[\\"):
            return ""
        if is_within and self._options.setdefault("contains", text) == text:
            return None
        glob = "".join({"*": ".*", "?": "."}.get(each) or re.escape(each) for each in pattern)
        return self._once(("regex",), f"(?s){re.escape(text)}" if is_within else f"(?s){_whole(glob)}")

    def _once(self, keys: tuple[str, ...], value: str) -> str | None:
        for key in keys:
            if self._options.setdefault(key, value) == value:
                return None
        return f"a check has one {keys[-1]}"

    def _answers(self, sign: str, value: str) -> str | None:
        call = _CALL.fullmatch(value)
        if sign != "==" or "answers" in self._options or (call is not None and call[1] != "any"):
            return ""
        self._options["answers"] = [value] if call is None else [each.strip() for each in call[2].split(",")]
        if call is not None:
            self._options["match"] = "any"
        return None

    def _rcode(self, sign: str, value: str) -> str | None:
        call = _CALL.fullmatch(value)
        if sign != "==" or "rcode" in self._options or (call is not None and call[1] != "any"):
            return ""
        self._options["rcode"] = value if call is None else [each.strip() for each in call[2].split(",")]
        return None

    def _path(self, what: str, sign: str, value: str) -> str | None:
        call = _CALL.fullmatch(what)
        path = _OF_BODY.fullmatch(what if call is None else call[2])
        if path is None or (call is not None and call[1] != "has"):
            return ""
        place = body_path(path[1])
        if call is not None:
            if (sign, value) in {("==", "true"), ("!=", "false")}:
                return self._expect(place)
            return "nothing here expects that there is no such member" if value in _WORDS else ""
        if _CALL.fullmatch(value) is not None or "[BODY]" in value:
            return ""
        is_number = _NUMBER.fullmatch(value) is not None
        if sign not in {"==", "!="} and not is_number:
            return ""
        return self._expect(f"{place} {sign} {value if is_number or value in _WORDS else shown(value)}")

    def _expect(self, expectation: str) -> str | None:
        self._options.setdefault("json", [])
        if expectation not in self._options["json"]:
            self._options["json"].append(expectation)
        return None


def body_path(path: str) -> str:
    """`.data[0].id` in our notation."""
    parts = [
        index or (f".{name}" if _PLAIN_MEMBER.fullmatch(name) else f"['{name}']") for name, index in _PART.findall(path)
    ]
    return "$" + "".join(parts)


def _whole(expression: str) -> str:
    return rf"\A{_SPACES}{expression}{_SPACES}\z"


def hours(length: str) -> float:
    """Read a length in Go's notation, in hours; 0: invalid."""
    return (_milliseconds(length) or 0.0) / _UNITS["h"]


def _milliseconds(value: str) -> float | None:
    if _LENGTH.fullmatch(value):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART_OF_LENGTH.findall(value))
    return float(value) if _NUMBER.fullmatch(value) and value[0] != "-" else None
