"""Keep secrets out of everything shown or logged."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from . import wording
from .spelling import spelling
from .url import MASK, Url

_SHORTEST: Final = 3
"""Characters. Shorter secrets would mask half of every text."""

_LONGEST_LOGGED: Final = 20_000
"""Characters."""

_SECRET_HEADER: Final = ("auth", "cookie", "key", "pass", "secret", "sess", "token")


class Redactor:
    """Masks the secrets that it knows."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: set[str] = set()
        self._as_given: list[str] = []
        self._spellings: list[str] = []
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets."""
        self._known |= {each for each in secrets if len(each) >= _SHORTEST}
        self._as_given = sorted(self._known)
        spelt = {spelling(each).text for each in self._known}
        self._spellings = sorted(each for each in spelt if len(each) >= _SHORTEST)

    def clean(self, text: str) -> str:
        """Mask each secret, in any spelling."""
        spans = [span for secret in self._as_given for span in _places(secret, text)]
        if self._spellings:
            found = spelling(text)
            for secret in self._spellings:
                spans += [(found.starts[at], found.ends[end - 1]) for at, end in _places(secret, found.text)]
        return _masked(text, spans) if spans else text


def _places(secret: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield every place, overlapping places too: "aba" is twice in "ababa"."""
    at = text.find(secret)
    while at >= 0:
        yield at, at + len(secret)
        at = text.find(secret, at + 1)


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in sorted(spans):
        if start >= end:
            parts += (text[end:start], MASK)
        end = max(end, stop)
    return "".join((*parts, text[end:]))


class RedactingFormatter(logging.Formatter):
    """Formats log records without secrets or control characters.

    A record is one line; its traceback is indented.
    """

    def __init__(self, redactor: Redactor, fmt: str) -> None:
        super().__init__(fmt)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """Format a record without another handler's cached traceback."""
        record.exc_text = None
        return super().format(record)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Format a message on one line."""
        return wording.harmless(self._shown(super().formatMessage(record)))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        """Indent a traceback."""
        return _indented(self._shown(super().formatException(ei)))

    def formatStack(self, stack_info: str) -> str:  # noqa: N802 - the name is logging's
        """Indent a stack."""
        return _indented(self._shown(super().formatStack(stack_info)))

    def _shown(self, text: str) -> str:
        found = self._redactor.clean(text)
        return found if len(found) <= _LONGEST_LOGGED else f"{found[:_LONGEST_LOGGED]}... ({len(found):,} characters)"


def _indented(text: str) -> str:
    return "\n".join(f"  {wording.harmless(line)}" for line in text.split("\n"))


def secrets_of(url: Url, headers: Mapping[str, str]) -> frozenset[str]:
    """A request's credentials, whole, in parts, and as sent."""
    found = set(url.secrets)
    for name, value in headers.items():
        if any(part in name.lower() for part in _SECRET_HEADER):
            found |= {value, *value.split()[1:]}
    if url.user is not None:
        found.add(basic_credentials(url))
    return frozenset(found)


def basic_credentials(url: Url) -> str:
    """User and password in HTTP's basic authentication."""
    return b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode("ascii")
