"""Checks of dns:// targets. They ask the URL's server, over UDP and, if truncated, over TCP."""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
