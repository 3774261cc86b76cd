"""Checks of dns:// targets: a name server answers a question as expected.

They ask only the server that the URL names, over UDP and, if truncated, over TCP.
"""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
