"""HTTP: a server of few words, for what comes in from outside.

Offers `Server`, which has one exchange on each connection and lets nothing out of it; `Peers`, which connections give
way where there are too many; and `Request` and `Answer`. Does not know what is asked for. Lives on the event loop.
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
