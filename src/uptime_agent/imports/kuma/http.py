"""Monitors of Kuma that ask by HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from ..foreign import Draft, ForeignTable, Hidden, shown, sign_in_first, take_body, take_headers, take_url

REDIRECTS: Final = 5
MOST_REDIRECTS: Final = 10

EXPIRES_WITHIN: Final = "21d"
"""Kuma's default."""

_TYPES: Final = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "xml": "text/xml; charset=utf-8",
}
_SIGNS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
_LITERAL: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]+)?|true|false|null")
_BY_HEADER: Final = "client_secret_basic"
_AUTHORIZATION: Final = "Authorization"
_OF_METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "basic": ("basic_auth_user", "basic_auth_pass"),
    "bearer": ("bearer_token",),
}


def take_http(draft: Draft, monitor: ForeignTable) -> None:
    """Take over the options of every HTTP monitor."""
    take_url(draft, monitor.text("url"), monitor.line_of("url"))
    if (method := monitor.text("method", "GET").upper()) != "GET":
        draft.put("method", method, monitor.line_of("method"))
    line = monitor.line_of("accepted_statuscodes")
    draft.put("expect_status", monitor.texts("accepted_statuscodes") or "200-299", line)
    _take_redirects(draft, monitor)
    if monitor.flag("ignoreTls"):
        draft.put("verify", value=False, line=monitor.line_of("ignoreTls"))
    if monitor.flag("expiryNotification"):
        draft.put("cert_expires_within", EXPIRES_WITHIN, monitor.line_of("expiryNotification"))
    draft.lines |= {key: monitor.line_of(key) for key in ("headers", "body")}
    _take_headers(draft, monitor)
    _take_body(draft, monitor)
    _take_sign_in(draft, monitor)


def _take_redirects(draft: Draft, monitor: ForeignTable) -> None:
    wanted = monitor.whole("maxredirects", MOST_REDIRECTS)
    draft.options["redirects"] = min(wanted, REDIRECTS)
    if wanted > REDIRECTS:
        draft.leave(f"maxredirects {wanted}: five are the most", monitor.line_of("maxredirects"))


def _take_headers(draft: Draft, monitor: ForeignTable) -> None:
    given = monitor.text("headers")
    if not given.strip():
        return
    try:
        found = json.loads(given)  # JSON within JSON
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or any(isinstance(each, (dict, list)) for each in found.values()):
        draft.leave("its headers, which are no JSON", monitor.line_of("headers"))
        return
    take_headers(draft, {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()})


def _take_body(draft: Draft, monitor: ForeignTable) -> None:
    body = monitor.text("body")
    encoding = monitor.text("httpBodyEncoding") or "json"
    if not body.strip():
        return
    take_body(draft, body)
    if encoding in _TYPES:
        draft.header("Content-Type", _TYPES[encoding])
    else:
        draft.leave(f"httpBodyEncoding {encoding}", monitor.line_of("httpBodyEncoding"))


def _take_sign_in(draft: Draft, monitor: ForeignTable) -> None:
    """At first version 1 had no authMethod: a user was enough."""
    implied = "basic" if monitor.text("basic_auth_user") and "authMethod" not in monitor.of.values else ""
    method = monitor.text("authMethod") or implied
    if method in _OF_METHODS:
        words = "Basic and its user and password in base64" if method == "basic" else "Bearer and its bearer_token"
        draft.options.setdefault("headers", {}).pop(_AUTHORIZATION, None)
        draft.header(_AUTHORIZATION, Hidden(_AUTHORIZATION, words))
        for key in _OF_METHODS[method]:
            monitor.take(key)
    elif method and method != "null" and not signs_in_first(monitor):
        draft.options["enabled"] = False
        draft.leave(
            f"authMethod {method}: it cannot sign in so, and has enabled = false", monitor.line_of("authMethod")
        )


def signs_in_first(monitor: ForeignTable) -> bool:
    """Whether a step can sign in, with the secret in a header."""
    given = monitor.of.values
    way = given.get("oauth_auth_method") or _BY_HEADER
    return given.get("authMethod") == "oauth2-cc" and bool(given.get("oauth_token_url")) and way == _BY_HEADER


def take_token(draft: Draft, monitor: ForeignTable) -> None:
    """Add the step that signs in, last of all."""
    for key in ("authMethod", "oauth_auth_method", "oauth_client_id", "oauth_client_secret"):
        monitor.take(key)
    sign_in_first(
        draft,
        monitor.text("oauth_token_url"),
        scopes=monitor.text("oauth_scopes"),
        audience=monitor.text("oauth_audience"),
    )


def take_keyword(draft: Draft, monitor: ForeignTable) -> None:
    """Take over a search for a word."""
    take_http(draft, monitor)
    if word := monitor.text("keyword"):
        draft.options["not_contains" if monitor.flag("invertKeyword") else "contains"] = word


def take_json(draft: Draft, monitor: ForeignTable) -> None:
    """Take over a comparison in JSON."""
    take_http(draft, monitor)
    path, sign = monitor.text("jsonPath", "$").strip(), monitor.text("jsonPathOperator") or "=="
    path = path if path.startswith("$") else f"$.{path}"
    wanted = monitor.text("expectedValue") if "expectedValue" in monitor else None
    if wanted is None:
        draft.put("json", [path], monitor.line_of("jsonPath"))
    elif sign not in _SIGNS:
        draft.leave(f"{path} {sign} {wanted}: there is no such comparison here", monitor.line_of("jsonPathOperator"))
    elif _LITERAL.fullmatch(wanted):
        draft.put("json", [f"{path} {sign} {wanted}"], monitor.line_of("jsonPath"))
        draft.leave(
            f"{path} {sign} {wanted}: types count here; put quotes around a text", monitor.line_of("expectedValue")
        )
    else:
        draft.put("json", [f"{path} {sign} {shown(wanted)}"], monitor.line_of("jsonPath"))
