"""The way to a target: addresses of its name, a connection to one of them, and how much may come over it.

Offers `Resolver`, which gives out no address that `Reach` does not permit; `dialled`, `secured`, `datagrams` and `echo`
with their `Budget`; and `certificates`, which say whom TLS trusts. Knows no protocol above TLS, and does not decide
whether a target is up. Lives on the event loop, but for the lookups of the system: these block, and have their threads.
"""

from __future__ import annotations

from . import certificates
from .budget import Budget
from .datagram import Datagrams, datagrams
from .echo import Echo, EchoUnsupported, echo
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
    "Family",
    "Reach",
    "Resolver",
    "Unresolved",
    "certificates",
    "datagrams",
    "dialled",
    "echo",
    "is_public",
    "reach",
    "secured",
]
