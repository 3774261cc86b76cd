"""Probing, as an application does it: the servers that a configuration names, while the agent runs and when asked.

Offers `Probing`, which has a fleet follow the configuration, `server_of`, what explains a server, and what tells of its
metrics. Does not know how
a server is asked, nor where a configuration comes from. Lives on the event loop. The probes are imported once there is
a server: they take as long as all checks.
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
