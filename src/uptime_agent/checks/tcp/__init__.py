"""Checks of tcp:// targets: something accepts connections there and, where asked to, says what it should.

Offers the kind `TCP`: a connection, over TLS or not, and a dialogue of texts to send and to wait for. Knows no
protocol: which texts make one, a configuration says. Lives on the event loop.
"""

from __future__ import annotations

from .tcp_check import TCP

__all__ = ["TCP"]
