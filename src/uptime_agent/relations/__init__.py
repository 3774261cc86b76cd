"""Relations: what targets have to do with one another.

Offers `Parents`, by which a target is unreachable rather than down, and `Groups`, which are down as a whole; and for
agents that share a store `SharedGroups`, `Elsewhere`, how targets stand that another agent has, and `Answers`, which
waits for them. `Here` knows whether to look there, and `Above` what a check asks of the targets above its own. Does not
know how a target is checked, which targets a file names, or who is told. Lives on the event loop; the store is asked in
threads.
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
