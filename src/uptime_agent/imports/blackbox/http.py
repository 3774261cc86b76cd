"""The http prober."""

from __future__ import annotations

import re
from typing import Final

from ..foreign import Draft, ForeignTable, Hidden, plain_text, take_body, take_headers, wildcard

REDIRECTS: Final = 5
_SIZE: Final = re.compile(r"([0-9]{1,12})([KMG]i?)?B?")
_FACTORS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_TLS: Final = {"TLS12": "1.2", "TLS13": "1.3"}
_AUTHORIZATION: Final = "Authorization"


def take_http(draft: Draft, options: ForeignTable) -> None:
    """Take over what the prober asks and expects."""
    codes = options.texts("valid_status_codes")
    wanted = [int(each) if each.isdigit() else each for each in codes] or "200-299"
    draft.put("expect_status", wanted, options.line_of("valid_status_codes"))
    follows = options.flag("follow_redirects", default=True) and not options.flag("no_follow_redirects")
    draft.options["redirects"] = REDIRECTS if follows else 0
    if "method" in options:
        draft.put("method", options.text("method").upper(), options.line_of("method"))
    draft.lines |= {key: options.line_of(key) for key in ("headers", "body")}
    _take_headers(draft, options)
    _take_authorization(draft, options)
    if body := options.text("body"):
        take_body(draft, body)
    elif path := options.text("body_file"):
        draft.put("body", {"file": path}, options.line_of("body_file"))
    _take_size(draft, options)
    _take_patterns(draft, options)
    _take_header_patterns(draft, options)
    if options.flag("fail_if_not_ssl") and not str(draft.url).startswith("https:"):
        draft.leave("the key http.fail_if_not_ssl", options.line_of("fail_if_not_ssl"))
    take_tls(draft, options)


def _take_headers(draft: Draft, options: ForeignTable) -> None:
    headers = options.table("headers")
    take_headers(draft, {name: headers.text(name) for name in headers})
    others = options.table("http_headers")
    for name in others:
        header = others.table(name)
        values = header.texts("values")
        if values:
            take_headers(draft, {name: values[0]})
        for each in values[1:]:
            draft.leave(f"{name}: {each}: a header has one value", header.line_of("values"))
        if not values and ("secrets" in header or "files" in header):
            header.take("secrets" if "secrets" in header else "files")
            draft.header(name, Hidden(name, f"the header {name}, as it stands in the other file"))
        header.rest()


def _take_authorization(draft: Draft, options: ForeignTable) -> None:
    if "basic_auth" in options:
        options.table("basic_auth").skip()
        draft.header(_AUTHORIZATION, Hidden(_AUTHORIZATION, "Basic and the credentials of basic_auth in base64"))
    if "authorization" in options:
        kind = options.table("authorization").text("type", "Bearer")
        options.table("authorization").skip()
        draft.header(_AUTHORIZATION, Hidden(_AUTHORIZATION, f"{kind} and the credentials of authorization"))
    for key in ("bearer_token", "bearer_token_file"):
        if options.take(key) is not None:
            draft.header(_AUTHORIZATION, Hidden(_AUTHORIZATION, f"Bearer and what {key} says"))


def _take_size(draft: Draft, options: ForeignTable) -> None:
    given = options.text("body_size_limit", "0")
    found = _SIZE.fullmatch(given)
    if found is None:
        draft.leave(f"body_size_limit {given}", options.line_of("body_size_limit"))
    elif int(found[1]):
        draft.put("max_body", int(found[1]) * _FACTORS[found[2] or ""], options.line_of("body_size_limit"))


def _take_patterns(draft: Draft, options: ForeignTable) -> None:
    for pattern, line in options.lined("fail_if_body_not_matches_regexp"):
        plain = plain_text(pattern)
        key = "contains" if plain is not None and "contains" not in draft.options else "regex"
        if draft.options.setdefault(key, pattern if key == "regex" else plain) not in {pattern, plain}:
            draft.leave(f"fail_if_body_not_matches_regexp {pattern}: a check has one {key}", line)
        draft.lines.setdefault(key, line)
    for pattern, line in options.lined("fail_if_body_matches_regexp"):
        plain = plain_text(pattern)
        if plain is None or draft.options.setdefault("not_contains", plain) != plain:
            draft.leave(f"fail_if_body_matches_regexp {pattern} (see not_contains)", line)


def _take_header_patterns(draft: Draft, options: ForeignTable) -> None:
    for each in options.tables("fail_if_header_not_matches"):
        name, pattern = each.text("header"), each.text("regexp")
        text = wildcard(pattern)
        expected = draft.options.get("expect_headers", {})
        if text is None or each.flag("allow_missing") or name in expected:
            draft.leave(f"fail_if_header_not_matches {name}: {pattern}", each.line)
        else:
            draft.options["expect_headers"] = {**expected, name: text}
    for each in options.tables("fail_if_header_matches"):
        draft.leave(f"fail_if_header_matches {each.text('header')}: {each.text('regexp')}", each.line)


def take_tls(draft: Draft, options: ForeignTable) -> None:
    """Take over how certificates are verified."""
    tls = options.table("tls_config")
    if tls.flag("insecure_skip_verify"):
        draft.put("verify", value=False, line=tls.line_of("insecure_skip_verify"))
    if "ca_file" in tls:
        draft.put("ca_file", tls.text("ca_file"), tls.line_of("ca_file"))
    if (oldest := tls.text("min_version")) in _TLS:
        draft.put("min_tls", _TLS[oldest], tls.line_of("min_version"))
    elif oldest:
        draft.leave(f"min_version {oldest}: 1.2 is the oldest here", tls.line_of("min_version"))
