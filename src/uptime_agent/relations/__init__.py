"""Relations between targets.

Offers `Parents`, which make a target unreachable instead of down, and `Groups`, which are down as a whole. For nodes
that share a store it offers `SharedGroups`, `Elsewhere`, the status of other nodes' targets, and `Answers`, which waits
for them. `Here` knows when to look there, and `Above` answers what a check asks about parents. Checks no target and
tells no person. Lives on the event loop; the store is asked in threads.
"""

from __future__ import annotations

from .above import Above
from .answers import Answers
from .elsewhere import Elsewhere, elsewhere_of
from .groups import GroupPlan, Groups
from .here import Here
from .parents import Parents, circle
from .shared import GROUP, LIMIT, SharedGroups

__all__ = [
    "GROUP",
    "LIMIT",
    "Above",
    "Answers",
    "Elsewhere",
    "GroupPlan",
    "Groups",
    "Here",
    "Parents",
    "SharedGroups",
    "circle",
    "elsewhere_of",
]
