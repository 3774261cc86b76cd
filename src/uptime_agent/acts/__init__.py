"""Acts of people while the agent runs: acknowledge, silence, pause, maintain, check now.

Knows no incidents and no messages. On the event loop; its values are pure.
"""

from __future__ import annotations

from .act import PREFIX, Act, ActKind, Scope, ScopeKind, act_id, act_of
from .acts import Acts
from .asked import ActRefused, ActUnfit, NoSuchName, actor_of, named, reason_of, scope_of, target_or_group, until_of
from .book import NOTHING, ActsOf, Known, Standing, no_acts
from .by_hand import COLUMNS, Change, begun, ended
from .jobs import TASK
from .keeping import ActDeps, ActKeeper

__all__ = [
    "COLUMNS",
    "NOTHING",
    "PREFIX",
    "TASK",
    "Act",
    "ActDeps",
    "ActKeeper",
    "ActKind",
    "ActRefused",
    "ActUnfit",
    "Acts",
    "ActsOf",
    "Change",
    "Known",
    "NoSuchName",
    "Scope",
    "ScopeKind",
    "Standing",
    "act_id",
    "act_of",
    "actor_of",
    "begun",
    "ended",
    "named",
    "no_acts",
    "reason_of",
    "scope_of",
    "target_or_group",
    "until_of",
]
