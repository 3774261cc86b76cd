"""HTTP requests from outside, answered by functions or by an ASGI app.

Bounds them in number, size and time. On the event loop.
"""

from __future__ import annotations

from .asgi import PEER, AsgiApp, AsgiHandler
from .descriptors import most_connections
from .exchange import HttpAnswer, HttpRequest, send_again
from .peers import Ends, PeerPlace, Peers, peer_of
from .server import HttpServer, plain
from .sockets import NotListening, forget, held, listen, listen_at

__all__ = [
    "PEER",
    "AsgiApp",
    "AsgiHandler",
    "Ends",
    "HttpAnswer",
    "HttpRequest",
    "HttpServer",
    "NotListening",
    "PeerPlace",
    "Peers",
    "forget",
    "held",
    "listen",
    "listen_at",
    "most_connections",
    "peer_of",
    "plain",
    "send_again",
]
