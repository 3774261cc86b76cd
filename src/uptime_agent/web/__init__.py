"""HTTP requests from outside.

Bounds them in number, size and time. On the event loop.
"""

from __future__ import annotations

from .descriptors import most_connections
from .exchange import HttpAnswer, HttpRequest, send_again
from .peers import Peers
from .server import HttpServer, NotListening, listen

__all__ = [
    "HttpAnswer",
    "HttpRequest",
    "HttpServer",
    "NotListening",
    "Peers",
    "listen",
    "most_connections",
    "send_again",
]
