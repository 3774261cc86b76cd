"""Probing the configured servers.

Lives on the event loop. Imports the probes only if needed: they take as long as all checks.
"""

from __future__ import annotations

from .explain import explained, explained_in_json
from .probing import Probing, server_of
from .stock import found_by, found_in_json, found_lines, stock, stock_in_json, stock_lines

__all__ = [
    "Probing",
    "explained",
    "explained_in_json",
    "found_by",
    "found_in_json",
    "found_lines",
    "server_of",
    "stock",
    "stock_in_json",
    "stock_lines",
]
