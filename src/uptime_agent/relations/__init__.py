"""Parents and groups of targets.

On the event loop; reads the store in threads.
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
