"""HTTP requests from outside.

Bounds them in number, size and time. On the event loop.
"""

from __future__ import annotations

from .descriptors import most_connections
from .exchange import Answer, Request, send_again
from .peers import Peers
from .server import NotListening, Server, listen

__all__ = [
    "Answer",
    "NotListening",
    "Peers",
    "Request",
    "Server",
    "listen",
    "most_connections",
    "send_again",
]
