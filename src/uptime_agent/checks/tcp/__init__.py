"""Checks of tcp:// targets: the target accepts connections and, if configured, answers as expected.

Offers the kind `TCP`: a connection, over TLS or not, and a dialogue of texts to send and to expect. The configuration
knows the protocol. Lives on the event loop.
"""

from __future__ import annotations

from .tcp_check import TCP

__all__ = ["TCP"]
