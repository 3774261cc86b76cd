from __future__ import annotations

from collections.abc import Collection

from .._loop import Core
from ..stores import StoredPause


def pauses_to_follow(core: Core, pauses: Collection[StoredPause]) -> dict[str, StoredPause | None]:
    """Return the pause of each scope, or None where these rows have none.

    Scopes whose change here is not written yet are left out.
    """
    found: dict[str, StoredPause | None] = dict.fromkeys(pause.scope for pause in core.pausing.pauses)
    found |= {pause.scope: pause for pause in pauses}
    for ours in (*(sealed.batch.pauses for sealed in core.journal.sealed), core.journal.pending.pauses):
        for scope in ours:
            found.pop(scope, None)
    return found
