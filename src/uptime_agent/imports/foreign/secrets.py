"""A value that may be secret is not copied: it comes from the environment.

Where no variable is possible, as in a URL, it is masked, and the check has `enabled = false`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ...text import masked, sounds_secret
from .draft import Draft, Hidden

_VARIABLE: Final = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_PAIR: Final = re.compile(r"""([A-Za-z][\w.-]{0,60}+)["']?\s*+[:=>(]\s*+["'\\]*+[^\s"'&<>,;{}\[\]]""")
_SIGNS_IN: Final = re.compile(r"\s*(?:\S+ +)?(?:AUTH|PASS|PASSWORD|LOGIN|SASL|OPER|IDENTIFY)\b", re.IGNORECASE)
_HANDED_ON: Final = re.compile(r"(?:[A-Za-z]+ )?\{[a-z_][a-z0-9_]{0,40}\}")

_COOKIE: Final = "cookie"
_WEB: Final = ("http://", "https://")
_POSTGRES: Final = "postgresql://"
_MASK: Final = "***"


def is_secret_text(text: str) -> bool:
    """Whether a text may hold a secret."""
    return any(sounds_secret(each[1]) for each in _PAIR.finditer(text)) or ("://" in text and masked(text) != text)


def public_name(name: str) -> str:
    """Mask a URL's credentials."""
    return masked(name) if "://" in name else name


def take_url(draft: Draft, url: str, line: int | None = None) -> None:
    """Take a URL over without credentials; a request sends them in a header."""
    draft.url = url
    if line is not None:
        draft.lines["url"] = line
    scheme, sign, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    credentials, at, place = authority.rpartition("@")
    if sign and at:
        user = credentials.partition(":")[0]
        is_postgres = f"{scheme}://" == _POSTGRES
        draft.url = f"{scheme}://{f'{user}@' if is_postgres and user else ''}{place}{rest[len(authority) :]}"
        if url.startswith(_WEB):
            draft.header("Authorization", Hidden("Authorization", "Basic and user:password of its URL in base64"))
        elif is_postgres and ":" in credentials:
            draft.leave("the password in its URL: PGPASSWORD or ~/.pgpass give one", line)
        elif not is_postgres:
            draft.leave("the credentials in its URL", line)
    if _query_is_secret(draft.url):
        draft.url = masked(draft.url)
        _switch_off(draft, "the secret in its URL", line)


def take_headers(draft: Draft, headers: Mapping[str, str]) -> None:
    """Take headers over; secret ones come from the environment."""
    for name, value in headers.items():
        own = draft.options.setdefault("headers", {})
        for other in [each for each in own if each.lower() == name.lower()]:
            del own[other]
        own[name] = _header(name, value)


def _header(name: str, value: str) -> str | Hidden:
    found = _VARIABLE.fullmatch(value)
    if found is not None:
        return Hidden(name, f"the header {name}, as before", found[1] or found[2])
    if _HANDED_ON.fullmatch(value):
        return value
    if sounds_secret(name) or _COOKIE in name.lower() or _VARIABLE.search(value) or is_secret_text(value):
        return Hidden(name, f"the header {name}, as it stands in the other file")
    return value


def take_body(draft: Draft, body: str) -> None:
    """Take a body over; from the environment if it may be secret."""
    hidden = _VARIABLE.search(body) or is_secret_text(body)
    draft.options["body"] = Hidden("body", "the body, as it stands in the other file") if hidden else body


def take_said(draft: Draft, said: str, line: int | None, *, signs_in: bool) -> tuple[str, bool]:
    """A text to send, and whether it signs in. So do texts after a sign-in."""
    if not (signs_in or _SIGNS_IN.match(said) or is_secret_text(said)):
        return said, False
    _switch_off(draft, "what it sends to sign in", line)
    return f"{_MASK}{said[len(said.rstrip()) :]}", True


def _switch_off(draft: Draft, what: str, line: int | None) -> None:
    draft.options["enabled"] = False
    draft.leave(f"{what}: put it in place of {_MASK}, and take enabled = false away", line)


def _query_is_secret(url: str) -> bool:
    try:
        query = urlsplit(url).query
    except ValueError:
        return masked(url) != url
    return any(sounds_secret(each.partition("=")[0]) and each.partition("=")[2] for each in query.split("&"))
