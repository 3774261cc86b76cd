"""The way to a target: addresses of its name, a connection to one of them, and how much may come over it.

Offers `Resolver`; `dialled`, `secured`, `datagrams` and `echo` with their `Budget`; and `certificates`, which say whom
TLS trusts. Knows no protocol above TLS, and does not decide whether a target is up. Lives on the event loop, but for
the system's lookups: these block, and have threads of their own.
"""

from __future__ import annotations

from . import certificates
from .budget import Budget
from .datagram import Datagrams, datagrams
from .echo import Echo, EchoUnsupported, echo
from .resolve import Family, Resolver, Unresolved
from .wire import dialled, secured

__all__ = [
    "Budget",
    "Datagrams",
    "Echo",
    "EchoUnsupported",
    "Family",
    "Resolver",
    "Unresolved",
    "certificates",
    "datagrams",
    "dialled",
    "echo",
    "secured",
]
