"""The way to a target: addresses of its name, a connection to one of them, and how much may come over it.

Offers `Resolver`, which gives out no address that `Reach` does not permit; `dialled`, `secured`, `datagrams` and `echo`
with their `Budget`; `certificates`, which say whom TLS trusts, and `Expiry`. Knows no protocol above TLS, and does not
decide whether a target is up. Lives on the event loop, but for the lookups of the system, which have their threads.
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
