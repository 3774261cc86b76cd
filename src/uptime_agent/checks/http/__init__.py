"""Checks of http:// and https:// targets: one request, and what a server may cost.

A redirect is returned, not followed: the caller takes that host's limits.
"""

from __future__ import annotations

from .exchange import Exchange
from .fetch import Document, fetch
from .handing_on import PLACE, Take
from .http_check import HTTP, HttpCheck
from .json_path import parse_path
from .options import field_name
from .patterns import Pattern, regex
from .redirects import OwnHost, RedirectTargets, forbidden, may_dial, may_name, next_url, refusal

__all__ = [
    "HTTP",
    "PLACE",
    "Document",
    "Exchange",
    "HttpCheck",
    "OwnHost",
    "Pattern",
    "RedirectTargets",
    "Take",
    "fetch",
    "field_name",
    "forbidden",
    "may_dial",
    "may_name",
    "next_url",
    "parse_path",
    "refusal",
    "regex",
]
