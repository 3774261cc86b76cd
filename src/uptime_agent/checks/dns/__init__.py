"""Checks of dns:// targets. They ask only the server of the URL, over UDP and, if truncated, over TCP."""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
