"""Checks of dns:// targets: a name server answers a question as expected.

Offers the kind `DNS`. Asks only the server that the URL names, over UDP and, if truncated, over TCP. Reads messages
with dnspython, within bounds. Lives on the event loop.
"""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
