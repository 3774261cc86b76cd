"""Relations: what targets have to do with one another.

Offers `Parents`, by which a target is unreachable rather than down, and `Groups`, which are down as a whole. Does not
know how a target is checked, which targets a file names, or who is told. Lives on the event loop.
"""

from __future__ import annotations

from .groups import GroupPlan, Groups
from .parents import Parents, circle

__all__ = ["GroupPlan", "Groups", "Parents", "circle"]
