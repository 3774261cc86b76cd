"""Parts of all importers: reading foreign files, and writing ours.

Knows no monitor by name.
"""

from __future__ import annotations

from .building import Items, Mapped, NotImported
from .draft import Draft, Hidden, shown
from .oauth import sign_in_first
from .patterns import plain_text, wildcard
from .places import bracketed, domain_of, host_of
from .reading import files_like, read_json, read_yaml, undotted
from .secrets import is_secret_text, public_name, take_body, take_headers, take_said, take_url
from .table import ForeignTable, table_of

__all__ = [
    "Draft",
    "ForeignTable",
    "Hidden",
    "Items",
    "Mapped",
    "NotImported",
    "bracketed",
    "domain_of",
    "files_like",
    "host_of",
    "is_secret_text",
    "plain_text",
    "public_name",
    "read_json",
    "read_yaml",
    "shown",
    "sign_in_first",
    "table_of",
    "take_body",
    "take_headers",
    "take_said",
    "take_url",
    "undotted",
    "wildcard",
]
