"""OAuth 2 with client credentials: a step asks for a token, the next sends it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from .draft import Draft, Hidden
from .secrets import take_url

_OF_THE_CHECK: Final = frozenset(
    ("degraded_above depends_on enabled interval max_attempts notify retry_interval schedule tags timeout").split()
)

_FORM: Final = "application/x-www-form-urlencoded"
_SIGN_IN: Final = "Basic and the client id and client secret, as id:secret in base64"


def sign_in_first(draft: Draft, token_url: str, *, scopes: str = "", audience: str = "") -> None:
    """Make a step that signs in first. `scopes`: separated by blanks."""
    request = Draft("request", draft.url, kind="check.step", lines=dict(draft.lines))
    request.options = {key: draft.options.pop(key) for key in list(draft.options) if key not in _OF_THE_CHECK}
    headers = request.options.setdefault("headers", {})
    for name in [each for each in headers if each.lower() == "authorization"]:
        del headers[name]
    request.header("Authorization", "Bearer {access_token}")
    draft.url = None
    draft.steps = [_token(token_url, scopes, audience), request]


def _token(url: str, scopes: str, audience: str) -> Draft:
    step = Draft("token", kind="check.step")
    take_url(step, url)
    asked = {"grant_type": "client_credentials", "scope": scopes, "audience": audience}
    step.options |= {"method": "POST", "body": urlencode({key: value for key, value in asked.items() if value})}
    step.header("Content-Type", _FORM)
    step.header("Authorization", Hidden("oauth client", _SIGN_IN))
    step.options["take"] = {"access_token": {"json": "$.access_token"}}
    return step
