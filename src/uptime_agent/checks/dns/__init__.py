"""Checks of dns:// targets, over UDP and, if truncated, over TCP.

Offers the kind and its messages.
"""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
