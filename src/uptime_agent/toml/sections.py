"""Read a table key by key, and note every problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from ..text import harmless, host_name, printable, wording
from .lines import Path
from .readers import Reader, Unfit, shown

T = TypeVar("T")
D = TypeVar("D")

_ATTEMPTS: Final = ("max_attempts", "did you mean 'max_attempts', which counts the first attempt as well?")
_ZONE: Final = ("interval", 'the zone stands in front of the schedule: schedule = "CRON_TZ=Europe/Berlin 0 8 * * *"')
FOREIGN: Final[Mapping[str, tuple[str, str]]] = {
    "retry": _ATTEMPTS,
    "retries": _ATTEMPTS,
    "attempts": _ATTEMPTS,
    "tz": _ZONE,
    "zone": _ZONE,
    "timezone": _ZONE,
    "time_zone": _ZONE,
    "every": ("interval", "did you mean 'interval'?"),
    "period": ("interval", "did you mean 'interval'?"),
    "cron": ("schedule", "did you mean 'schedule'?"),
    "status": ("expect_status", "did you mean 'expect_status'?"),
    "keyword": ("contains", "did you mean 'contains'?"),
    "body_contains": ("contains", "did you mean 'contains'?"),
    "jsonpath": ("json", "did you mean 'json', as in json = '$.status == \"ok\"'?"),
    "json_path": ("json", "did you mean 'json', as in json = '$.status == \"ok\"'?"),
    "json_query": ("json", "did you mean 'json', as in json = '$.status == \"ok\"'?"),
    "pattern": ("regex", "did you mean 'regex'?"),
    "regexp": ("regex", "did you mean 'regex'?"),
    "matches": ("regex", "did you mean 'regex'?"),
    "data": ("body", "did you mean 'body'?"),
    "payload": ("body", "did you mean 'body'?"),
    "insecure": ("verify", "did you mean verify = false?"),
    "skip_verify": ("verify", "did you mean verify = false?"),
    "follow_redirects": ("redirects", "did you mean 'redirects', which says how many?"),
}
"""Other programs' words for our keys, and advice."""

_ALERTS: Final = 'tells people over channels: add a [[channel]], and where not all are to be told, notify = ["NAME"]'
MISSING: Final[Mapping[str, str]] = dict.fromkeys(
    ("alert", "alerts", "alerting", "notification", "notifications", "webhook", "email", "slack"), _ALERTS
)
"""Other programs' words for what we do differently."""


_MOST_COMPARED: Final = 100
"""[limits] may have thousands of keys."""

_MOST_TOLD: Final = 100


@frozen(order=True)
class Problem:
    """A problem and its line; 0: the whole file."""

    line: int
    text: str

    def at(self, file: str) -> str:
        """Write "uptime.toml:12: unknown key ..."."""
        place = f"{harmless(file)}:{self.line}" if self.line else harmless(file)
        return f"{place}: {printable(self.text)}"


class Enough(Exception):
    """Problems exceed their bound."""


class Problems(list[Problem]):
    """Problems, at most `most`."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most

    def append(self, problem: Problem) -> None:
        """Note a problem. Raises Enough."""
        if self._most is not None and len(self) >= self._most:
            raise Enough
        super().append(problem)


class ConfigError(Exception):
    """A configuration cannot be used. Its text has a line per problem.

    Not `is_whole`: reading stopped.
    """

    def __init__(self, file: str, problems: Iterable[Problem], *, is_whole: bool = True) -> None:
        self.problems = tuple(sorted(problems))
        lines = [each.at(file) for each in self.problems[:_MOST_TOLD]]
        left_out = wording.least(len(self.problems) - len(lines), is_exact=is_whole)
        more = f"{file}: and {left_out} more" if len(self.problems) > len(lines) else ""
        super().__init__("\n".join([*lines, more]).rstrip("\n"))


@define(eq=False)
class Section:
    """A table. Subsections share `problems`."""

    table: Mapping[str, Any]
    path: Path
    name: str
    lines: Mapping[Path, int]
    problems: list[Problem] = field(factory=list)
    _asked: dict[str, None] = field(factory=dict)
    _misfits: set[str] = field(factory=set)

    def has(self, key: str) -> bool:
        """Whether the key exists."""
        return key in self.table

    def is_asked(self, key: str) -> bool:
        """Whether the key was asked for."""
        return key in self._asked

    def is_misfit(self, key: str) -> bool:
        """Whether the default replaces a wrong value."""
        return key in self._misfits

    def has_any(self, keys: Mapping[str, None]) -> bool:
        """Whether a key exists, and ask for all."""
        self._asked.update(keys)
        return not self.table.keys().isdisjoint(keys)

    @property
    def is_known(self) -> bool:
        """Whether every key was asked for."""
        return self.table.keys() <= self._asked.keys()

    def take(self, key: str, reader: Reader[T], default: D, meaning: str = "") -> T | D:  # noqa: ARG002 - see below
        """Return a key's value, or the default if missing or wrong, which is a problem.

        `meaning` is only for docs/configuration.md.
        """
        self._asked[key] = None
        if key not in self.table:
            return default
        try:
            return reader(self.table[key])
        except Unfit as exc:
            self.complain(f"{key}: {exc}", key)
            self._misfits.add(key)
            return default

    def require(self, key: str, reader: Reader[T], meaning: str = "") -> T | None:
        """Return a required key's value; None, and a problem, without."""
        if key not in self.table:
            self._asked[key] = None
            self.complain(f"the key '{key}' is missing")
        return self.take(key, reader, None, meaning)

    def section(self, key: str, meaning: str = "") -> Section:  # noqa: ARG002 - as for `take`
        """Enter a subtable, empty if it is missing."""
        self._asked[key] = None
        table = self.table.get(key, {})
        if not isinstance(table, dict):
            self.complain(f"{key}: expected a table [{key}], found {shown(table)}", key)
            table = {}
        return Section(table, (*self.path, key), f"[{key}]", self.lines, self.problems)

    def end(self, also_known: Iterable[str] = ()) -> None:
        """Note keys that were not asked for."""
        known = [*islice(self._asked, _MOST_COMPARED), *also_known]
        for key in self.table:
            if key not in self._asked:
                where = f" in {self.name}" if self.name else ""
                self._note(f"unknown key '{key}'{where}{suggestion(key, known)}", key)

    def complain(self, text: str, key: str | None = None) -> None:
        """Note a problem."""
        self._note(f"{self.name}: {text}" if self.name else text, key)

    @property
    def line(self) -> int:
        """The line where the table begins."""
        return self._line(self.path)

    def _note(self, text: str, key: str | None) -> None:
        self.problems.append(Problem(self._line(self.path if key is None else (*self.path, key)), text))

    def _line(self, path: Path) -> int:
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def one_form(names: Iterable[str], section: Section, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield hosts in canonical form, and as written. Notes mistakes and repetitions."""
    seen: dict[str, str] = {}
    for name in names:
        key = prefix + name
        try:
            host = host_name(name)
        except ValueError as exc:
            section.complain(f"{key}: expected {exc}", key)
            host = name
        if host in seen:
            section.complain(f"{key}: is the same host as {seen[host]}: keep one of them", key)
        seen.setdefault(host, key)
        yield host, name


def suggestion(key: str, known: Iterable[str]) -> str:
    """Return ", did you mean 'interval'?", or the known keys."""
    choices = list(known)
    ours, advice = FOREIGN.get(key.lower(), ("", ""))
    if ours in choices:
        return f", {advice}"
    if key.lower() in MISSING:
        return f": the agent {MISSING[key.lower()]}"
    if similar := get_close_matches(key.lower(), choices, n=1):
        return f", did you mean '{similar[0]}'?"
    return f"; there is {', '.join(sorted(choices))}" if choices else ""
