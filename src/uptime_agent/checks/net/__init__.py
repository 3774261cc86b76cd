"""The way to a target: names, addresses, connections, and bounds on what comes in.

On the event loop; lookups have threads.
"""

from __future__ import annotations

from . import certificates
from .budget import Budget
from .datagram import Datagrams, datagrams
from .echo import Echo, EchoUnsupported, echo
from .expiry import Expiry, expiry_of, with_expiry
from .reach import ANYWHERE, PUBLIC, Reach, is_public, reach
from .resolve import Family, Resolver, Unresolved
from .wire import dialled, secured

__all__ = [
    "ANYWHERE",
    "PUBLIC",
    "Budget",
    "Datagrams",
    "Echo",
    "EchoUnsupported",
    "Expiry",
    "Family",
    "Reach",
    "Resolver",
    "Unresolved",
    "certificates",
    "datagrams",
    "dialled",
    "echo",
    "expiry_of",
    "is_public",
    "reach",
    "secured",
    "with_expiry",
]
