"""Who asks, and what they may do. The user's callable says both; nothing is open by default."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final, Literal

from attrs import field, frozen

Scope = Literal["read", "operate", "admin"]

SCOPES: Final[tuple[Scope, ...]] = ("read", "operate", "admin")
"""Each includes the scopes before it."""


def _scopes_of(scopes: str | Iterable[str]) -> frozenset[str]:
    found = frozenset((scopes,) if isinstance(scopes, str) else scopes)
    unknown = sorted(found - set(SCOPES), key=repr)
    if unknown:
        msg = f"there is no scope {unknown[0]!r}: there are {', '.join(SCOPES)}"
        raise ValueError(msg)
    return found


@frozen
class Access:
    """A caller of the control API: a name for the log, and scopes.

    `scopes`: "read" sees jobs without arguments, results and errors. "operate" also runs, pauses, resumes and skips.
    "admin" also adds, changes and removes jobs. One text or several.
    """

    name: str
    scopes: frozenset[str] = field(converter=_scopes_of)

    def may(self, scope: Scope) -> bool:
        """Return whether the caller has this scope, or a scope that includes it."""
        return not self.scopes.isdisjoint(SCOPES[SCOPES.index(scope) :])


AsgiScope = MutableMapping[str, Any]
GrantAccess = Callable[[AsgiScope], Awaitable[Access | None] | Access | None]
"""The user's callable: it reads the ASGI scope of a request. None: the request is refused."""
