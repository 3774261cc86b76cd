from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, NoReturn, TypeVar

from ._common import AnyOf, Schedule, ScheduleError, Window, positive, shown
from ._plain import plain, when

MAX_CHARACTERS: Final = 10_000
"""Characters."""

DEEPEST: Final = 20
"""Nested parentheses."""

_KEYWORDS: Final = frozenset({"from", "until", "except", "and", "for", "because"})
_COMBINED: Final = re.compile(r"[|\"]|(?:^|\s)\(|\)(?:\s|$)|(?:^|\s)(?:from|until|except)(?:\s|$)", re.IGNORECASE)
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<sign>[()|])|(?P<word>[^\s()|"]+(?:\([^\s()|"]*\)[^\s()|"]*)*))"""
)
"""A word may hold parentheses without spaces, as cron's H(0-29) does."""

T = TypeVar("T")


def parse(text: str, *, tz: str = "UTC") -> Schedule:
    """Return the schedule that `text` names.

    "@every 10s", "@after 10s", "@at 2026-01-31T12:00Z" and "@calendar 1 month origin=..." are Every, After, At and
    Calendar. Five fields, six (seconds first), seven (a year last) and nicknames such as "@hourly" are Cron. Wall times
    are in the zone `tz`, unless the text names one (CRON_TZ=... or TZ=... before fields, tz=... after). "a | b", "a
    from ... until ..." and "a except (b for 2h)" combine schedules, with parentheses where needed. It reads the `str()`
    of a schedule.

    Raises ScheduleError for anything else, and above 10,000 characters or 20 levels of parentheses.
    """
    if not isinstance(text, str):
        raise ScheduleError(f'a schedule must be text such as "@every 10s" or "*/5 * * * *", not {shown(text)}')
    if len(text) > MAX_CHARACTERS:
        raise ScheduleError(
            f"the schedule {text[:50]!r}... is {len(text)} characters long: write at most {MAX_CHARACTERS}"
        )
    return _Reader(text, tz).read() if _COMBINED.search(text) else plain(text, tz)


class _Reader:
    """`|` binds loosest; from, until and except belong to the schedule right before them."""

    def __init__(self, text: str, tz: str) -> None:
        self._text = text
        self._tz = tz
        self._tokens = self._split()
        self._at = 0
        self._depth = 0

    def read(self) -> Schedule:
        found = self._union()
        if self._at < len(self._tokens):
            self._refuse(f"{self._token!r} stands where nothing fits: put what belongs together into parentheses")
        return found

    def _split(self) -> list[re.Match[str]]:
        found: list[re.Match[str]] = []
        end, last = 0, len(self._text.rstrip())
        while end < last:
            token = _TOKEN.match(self._text, end)
            if token is None:
                self._refuse(f"the quotation mark in {self._text[end : end + 50].strip()!r} has no second one")
            found.append(token)
            end = token.end()
        return found

    @property
    def _token(self) -> str:
        if self._at == len(self._tokens):
            return ""
        text = self._tokens[self._at].group().strip()
        return text.lower() if text.lower() in _KEYWORDS else text

    def _take(self, token: str) -> bool:
        found = self._token == token
        self._at += found
        return found

    def _expect(self, token: str, where: str) -> None:
        if not self._take(token):
            self._refuse(f"write {token!r} {where}, {f'not {self._token!r}' if self._token else 'where it ends'}")

    def _union(self) -> Schedule:
        parts = [self._bounded()]
        while self._take("|"):
            parts.append(self._bounded())
        return parts[0] if len(parts) == 1 else AnyOf(parts)

    def _bounded(self) -> Schedule:
        found = self._single()
        while True:
            if self._take("from"):
                start = self._words(when, "from")
                found = found.between(start, self._words(_end, "until") if self._take("until") else None)
            elif self._take("until"):
                found = found.between(None, self._words(_end, "until"))
            elif self._take("except"):
                found = found.except_(*self._windows())
            else:
                return found

    def _single(self) -> Schedule:
        if not self._take("("):
            return self._words(lambda text: plain(text, self._tz), "here")
        found = self._inside(self._union)
        self._expect(")", "behind what stands in parentheses")
        return found

    def _inside(self, read: Callable[[], T]) -> T:
        self._depth += 1
        if self._depth > DEEPEST:
            self._refuse(f"there are more than {DEEPEST} parentheses inside each other")
        found = read()
        self._depth -= 1
        return found

    def _windows(self) -> list[Window]:
        self._expect("(", "behind except, as in (0 2 * * sun for 2h)")
        if self._take(")"):
            return []
        found = [self._inside(self._window)]
        while self._take("and"):
            self._expect("(", "behind and, as in (0 2 * * sun for 2h)")
            found.append(self._inside(self._window))
        return found

    def _window(self) -> Window:
        starts = self._union()
        self._expect("for", "and how long, as in (0 2 * * sun for 2h)")
        length = self._words(positive, "for")
        reason = self._reason() if self._take("because") else ""
        self._expect(")", "behind the length of the window")
        return Window(starts, length, reason=reason)

    def _reason(self) -> str:
        token = self._token
        try:
            reason = json.loads(token)
        except ValueError:
            reason = None
        if not isinstance(reason, str):
            self._refuse(f'write the reason as in because "new disks", not {token!r}')
        self._at += 1
        return reason

    def _words(self, read: Callable[[str], T], where: str) -> T:
        first = self._at
        while self._at < len(self._tokens) and self._tokens[self._at]["word"] and self._token not in _KEYWORDS:
            self._at += 1
        if self._at == first:
            place = (
                f"behind {where!r}" if where != "here" else f"before {self._token!r}" if self._token else "at its end"
            )
            self._refuse(f"something is missing {place}")
        return read(self._text[self._tokens[first].start("word") : self._tokens[self._at - 1].end()])

    def _refuse(self, why: str) -> NoReturn:
        raise ScheduleError(f"cannot read the schedule {self._text!r}: {why}")


def _end(text: str) -> datetime | None:
    return None if text.lower() == "never" else when(text)
