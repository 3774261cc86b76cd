"""Our file, written: a table for each draft, with comments on losses.

What our own reader refuses becomes a comment, and those tables are read again. So `timerqueue check` accepts the file,
at a cost in proportion to its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from ..config import LARGEST_FILE
from ..text import printable
from .foreign import Draft, Hidden

ROUNDS: Final = 60
"""Rereadings: no table has more wrong keys."""

MIN_CHECKS: Final = 20
"""Checks from which [defaults] is made."""

LISTEN: Final = "127.0.0.1:8075"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPED: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TO_ESCAPE: Final = re.compile(r'[\\"\x00-\x1f\x7f]')
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
_DECIDE: Final = frozenset({"name", "url", "take", "token", "step", "members", "targets", "schedule", "duration"})
"""If one is refused, so is the whole table."""

_COMMON: Final = ("interval", "timeout", "degraded_above", "max_attempts", "retry_interval")
_LISTS: Final = frozenset({"json", "tags"})
"""A refused item drops no other."""


class FileProblem(Protocol):
    """A problem of our file."""

    @property
    def line(self) -> int:
        """The line, from 1."""

    @property
    def text(self) -> str:
        """The problem in words."""


class ProblemsOf(Protocol):
    """Finds the problems of a text."""

    def __call__(self, text: str, /) -> Sequence[FileProblem]:
        """Read it."""


@frozen
class Imported:
    """Our file, its number of `checks`, and losses by check."""

    text: str
    checks: int
    left: tuple[str, ...]


def imported(source: str, drafts: Iterable[Draft], left: Iterable[str], problems: ProblemsOf) -> Imported:
    """Write our file."""
    found = list(drafts)
    of_file = list(left)
    _name_apart(found)
    _name_variables(found)
    _fit(found, problems, of_file)
    kept = [each for each in found if not each.is_dropped]
    head = [f"# Imported from {printable(source)}.", *(f"# Not carried over: {printable(each)}" for each in of_file)]
    head += [f"# Not carried over: {_told(draft, each)}" for draft in found if draft.is_dropped for each in draft.left]
    page = _page(kept, [*head, "", *_defaults(kept)], with_comments=True)
    text = "\n".join(page.lines).rstrip("\n") + "\n"
    if any(_reports(each) for each in kept):
        of_file.append(f"signals come in at {LISTEN}: see [push] listen")
    if len(text.encode()) > LARGEST_FILE:
        of_file.append(f"the file is larger than the {LARGEST_FILE // 10**6} MB that are read: import it in parts")
    notes = [printable(each) for each in of_file]
    for draft in found:
        notes += [_told(draft, each) for each in draft.left]
        notes += [f"{printable(draft.name)}: set {each.variable}: {printable(each.words)}" for each in _hidden(draft)]
    checks = sum(each.kind == "check" for each in kept)
    return Imported(text, checks, tuple(notes))


def _told(draft: Draft, what: str) -> str:
    return f"{printable(draft.name)}: {printable(what)}"


def _defaults(kept: Iterable[Draft]) -> Iterator[str]:
    checks = [each for each in kept if each.kind == "check"]
    common = [
        key
        for key in _COMMON
        if len(checks) >= MIN_CHECKS
        and len({_value(each.options.get(key, ())) for each in checks}) == 1
        and key in checks[0].options
    ]
    if common:
        yield "[defaults]"
        yield from (f"{key} = {_value(checks[0].options[key])}" for key in common)
        yield ""
    for each in checks:
        for key in common:
            del each.options[key]


def _name_apart(drafts: Iterable[Draft]) -> None:
    names, counts = set[str](), dict[str, int]()
    for draft in drafts:
        first = draft.name
        while draft.name in names:
            counts[first] = counts.get(first, 1) + 1
            draft.name = f"{first} ({counts[first]})"
        names.add(draft.name)


def _name_variables(drafts: Sequence[Draft]) -> None:
    """Give each hidden value its own variable, unless the other file names one."""
    taken = {each.variable for draft in drafts for each in _hidden(draft)}
    counts = dict[str, int]()
    for draft in drafts:
        for each in _hidden(draft):
            if each.variable:
                continue
            name = _NOT_IN_A_NAME.sub("_", f"{draft.name}_{each.about}").strip("_").upper()
            first = each.variable = f"_{name}" if name[:1].isdigit() else name
            while each.variable in taken:
                counts[first] = counts.get(first, 1) + 1
                each.variable = f"{first}_{counts[first]}"
            taken.add(each.variable)


def _hidden(draft: Draft) -> Iterator[Hidden]:
    for options in (draft.options, *(step.options for step in draft.steps)):
        for value in options.values():
            values = value.values() if isinstance(value, dict) else (value,)
            yield from (each for each in values if isinstance(each, Hidden))


@define(eq=False)
class _Page:
    lines: list[str]
    about: dict[int, tuple[Draft, Draft, str | None]] = field(factory=dict)

    def add(self, text: str, draft: Draft, part: Draft, key: str | None = None) -> None:
        self.lines.append(text)
        self.about[len(self.lines)] = (draft, part, key)


def _page(drafts: Iterable[Draft], head: Iterable[str] = (), *, with_comments: bool = False) -> _Page:
    page = _Page(list(head))
    tables = list(drafts)
    if any(_reports(each) for each in tables):
        page.lines += ["[push]", f'listen = "{LISTEN}"', ""]
    for draft in tables:
        if with_comments:
            page.lines += [f"# Not carried over: {printable(each)}" for each in draft.left]
        _write(page, draft)
        page.lines.append("")
    return page


def _write(page: _Page, draft: Draft) -> None:
    for part in (draft, *draft.steps):
        page.add(f"[[{part.kind}]]", draft, part)
        page.add(f"name = {_value(part.name)}", draft, part, "name")
        if part.url is not None and not (part is draft and draft.steps):
            page.add(f"url = {_value(part.url)}", draft, part, "url")
        for key, value in part.options.items():
            page.add(f"{_key(key)} = {_value(value)}", draft, part, key)


def _reports(draft: Draft) -> bool:
    return str(draft.url).startswith("push:") and draft.options.get("enabled") is not False


def _fit(drafts: Sequence[Draft], problems: ProblemsOf, of_file: list[str]) -> None:
    """First of checks, then of tables about them."""
    checks = [each for each in drafts if each.kind == "check" and not each.is_dropped]
    pending = _amended(checks, problems, of_file)
    if not pending and all(each.kind == "check" for each in drafts):
        return
    for _ in range(ROUNDS):
        pending = _amended([each for each in pending if not each.is_dropped], problems, of_file)
    for each in pending:
        each.drop("the whole check: too much is wrong with it")
    for _ in range(ROUNDS):
        _leave_out_members(drafts)
        if not _amended([each for each in drafts if not each.is_dropped], problems, of_file):
            return


def _amended(drafts: Sequence[Draft], problems: ProblemsOf, of_file: list[str]) -> list[Draft]:
    if not drafts:
        return []
    page = _page(drafts)
    found: dict[int, Draft] = {}
    for each in problems("\n".join(page.lines) + "\n"):
        if each.line not in page.about:
            of_file += [each.text] if each.text not in of_file else []
            continue
        draft, part, key = page.about[each.line]
        found[id(draft)] = draft
        _leave_out(draft, part, key, each.text, problems)
    return list(found.values())


def _leave_out(draft: Draft, part: Draft, key: str | None, why: str, problems: ProblemsOf) -> None:
    if draft.is_dropped:
        return
    if key is None or key in _DECIDE or (key == "name" and part is not draft):
        draft.drop(f"the whole {draft.kind} ({why})", part.lines.get(key or "url"))
        return
    value = part.options.pop(key, None)
    if value is None:  # two problems of one key
        return
    if key in _LISTS and isinstance(value, list) and len(value) > 1:
        good = [each for each in value if not problems("\n".join(_trial(part, key, each)) + "\n")]
        if 0 < len(good) < len(value):
            part.options[key] = good
            value = [each for each in value if each not in good]
    draft.leave(f"{key} = {_value(value)} ({why})", part.lines.get(key))


def _trial(part: Draft, key: str, item: Any) -> Iterator[str]:
    yield "[[check]]"
    yield f"url = {_value(part.url or 'http://example.org')}"
    yield f"{key} = {_value([item])}"


def _leave_out_members(drafts: Iterable[Draft]) -> None:
    for draft in drafts:
        for key in ("members", "targets"):
            if key in draft.options:
                draft.options[key] = [each for each in draft.options[key] if not each.is_dropped]
        if not draft.is_dropped and [] in draft.options.values():
            draft.drop(f"the whole {draft.kind}: none of its checks is there")


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list():
            return "[" + ", ".join(_value(each) for each in value) + "]"
        case dict():
            return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
        case Draft():
            return _value(value.name)
        case Hidden():
            return f"{{ env = {_value(value.variable)} }}"
        case _:
            text = str(value)
            if text.isascii():
                return f'"{_TO_ESCAPE.sub(lambda found: _letter(found[0]), text)}"'
            return '"' + "".join(_letter(each) for each in text) + '"'


def _letter(letter: str) -> str:
    if letter in _ESCAPED:
        return _ESCAPED[letter]
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)
