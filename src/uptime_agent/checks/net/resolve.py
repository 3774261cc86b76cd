"""From names to addresses, and whether a failed lookup is our fault."""

from __future__ import annotations

import enum
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from ...text import address_family, is_address
from ..contract import OUT_OF_DESCRIPTORS, Status, out_of_descriptors
from .lookups import NotLookedUp, SystemLookup
from .reach import ANYWHERE, Reach

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""Returns addresses, best first. Raises OSError, such as socket.gaierror."""

MOST_REMEMBERED: Final = 1_000


class Family(enum.Enum):
    """Which addresses count."""

    ANY = "any"
    V4 = "4"
    V6 = "6"


class Unresolved(Exception):
    """A name has no address. `status` DOWN: the target's fault."""

    def __init__(self, status: Status, text: str) -> None:
        super().__init__(text)
        self.status = status


class Resolver:
    """Looks names up, each time again. `hosts`: fixed answers. Returns only addresses within `reach`.

    If a name that worked before fails as well, we are offline.
    """

    def __init__(
        self, hosts: Mapping[str, Sequence[str]] | None = None, lookup: Lookup | None = None, reach: Reach = ANYWHERE
    ) -> None:
        self._hosts = hosts or {}
        self._reach = reach
        self._lookup = SystemLookup() if lookup is None else lookup
        self._worked: dict[str, None] = {}

    def follow(self, hosts: Mapping[str, Sequence[str]], reach: Reach = ANYWHERE) -> None:
        """Use these answers and this reach from now on."""
        self._hosts = hosts
        self._reach = reach

    async def addresses(self, host: str, family: Family = Family.ANY) -> list[str]:
        """Find at least one address. Raises Unresolved."""
        return self.known(host, family) or self._fitting(host, await self._find(host), family)

    def known(self, host: str, family: Family = Family.ANY) -> list[str] | None:
        """Addresses that need no lookup, or None. Raises Unresolved."""
        found = (host,) if is_address(host) else self._hosts.get(host)
        return None if found is None else self._fitting(host, found, family)

    def _fitting(self, host: str, found: Sequence[str], family: Family) -> list[str]:
        fitting = [each for each in found if family is Family.ANY or str(address_family(each)) == family.value]
        if not fitting:
            raise Unresolved(Status.DOWN, f"{host} has no IPv{family.value} address, only {', '.join(found)}")
        permitted = [each for each in fitting if self._reach.permits(host, each)]
        if not permitted:
            raise Unresolved(Status.DOWN, self._reach.refusal(host, fitting[0]))
        return list(dict.fromkeys(permitted))

    def why_late(self, host: str) -> str:
        """Words after "cannot look it up in time"."""
        return self._lookup.why_late(host) if isinstance(self._lookup, SystemLookup) else ""

    async def _find(self, host: str) -> Sequence[str]:
        try:
            found = await self._lookup(host)
        except OSError as exc:
            raise await self._explained(host, exc) from exc
        if len(self._worked) < MOST_REMEMBERED:
            self._worked[host] = None
        return found

    async def _explained(self, host: str, error: OSError) -> Unresolved:
        if out_of_descriptors():
            return Unresolved(Status.UNKNOWN, OUT_OF_DESCRIPTORS)
        if isinstance(error, NotLookedUp):
            return Unresolved(Status.UNKNOWN, f"cannot look up {host}: {error}")
        reason = str(error.strerror or error).lower()
        control = next((name for name in self._worked if name != host), None)
        if control is None:
            is_known_missing = isinstance(error, socket.gaierror) and error.errno in _NO_SUCH_NAME
            status = Status.DOWN if is_known_missing else Status.UNKNOWN
            return Unresolved(status, f"cannot look up {host}: {reason}")
        try:
            await self._lookup(control)
        except OSError:
            text = f"this machine is offline: it can look up neither {host} nor {control}, which worked before"
            return Unresolved(Status.UNKNOWN, text)
        return Unresolved(Status.DOWN, f"cannot look up {host}: {reason}")


_NO_SUCH_NAME: Final = {getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)}
