"""Checks of dns:// targets: a server of names answers a question, and as it should.

Offers the kind `DNS`. Asks the one server that the URL names, over UDP and, what is truncated, over TCP; follows no
name to another server. Reads messages with dnspython, of which it bounds what that may cost. Lives on the event loop.
"""

from __future__ import annotations

from .dns_check import DNS

__all__ = ["DNS"]
