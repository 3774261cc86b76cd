"""Checks of dns:// targets, over UDP and, if truncated, over TCP."""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
