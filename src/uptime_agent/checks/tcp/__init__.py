"""Checks of tcp:// targets: a connection, over TLS or not, and a dialogue."""

from __future__ import annotations

from .tcp_check import TCP

__all__ = ["TCP"]
