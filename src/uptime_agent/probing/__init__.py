"""Probing in an application: the servers of a configuration, while the agent runs and on request.

Offers `Probing`, whose fleet follows the configuration, `server_of`, and texts about a server and its metrics. Knows no
query and no file. Lives on the event loop. The probes are imported only when there is a server: they take as long as
all checks.
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
