"""Checks of http:// and https:// targets: one request, its response, its body, and where it redirects to.

Offers the kind `HTTP`, and the `Exchange` under it, for who tells something over HTTP. Bounds what a server may cost,
and words what it did wrong. Does not follow a redirect itself: it says where to, and its caller looks the name up and
takes the limits of that host. Lives on the event loop.
"""

from __future__ import annotations

from .exchange import Exchange
from .http_check import HTTP

__all__ = ["HTTP", "Exchange"]
