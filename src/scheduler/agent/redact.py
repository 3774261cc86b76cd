"""Keeps secrets out of whatever is shown or logged."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Final

from .url import MASK, Url

_SHORTEST: Final = 3
"""Characters. A shorter secret would mask half of every text, and protects nothing."""

_SECRET_HEADER: Final = ("auth", "cookie", "key", "pass", "secret", "sess", "token")


class Redactor:
    """Knows secrets and replaces them in texts."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first, for one may be part of another.
        self._secrets = sorted({each for each in secrets if len(each) >= _SHORTEST}, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text with each secret masked."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


class RedactingFormatter(logging.Formatter):
    """Formats log records without secrets, tracebacks included."""

    def __init__(self, redactor: Redactor, fmt: str) -> None:
        super().__init__(fmt)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """As logging does, masked."""
        return self._redactor.clean(super().format(record))


def secrets_of(url: Url, headers: Mapping[str, str]) -> frozenset[str]:
    """What must not be shown of a request: credentials, whole and in parts, and in the form in which they are sent."""
    found = set(url.secrets)
    for name, value in headers.items():
        if any(part in name.lower() for part in _SECRET_HEADER):
            found |= {value, *value.split()[1:]}
    if url.user is not None:
        found.add(basic_credentials(url))
    return frozenset(found)


def basic_credentials(url: Url) -> str:
    """User and password as HTTP's basic authentication sends them."""
    return b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode("ascii")
