"""How many units of limits that are the fleet's may be in use here now.

Units borrows them in rounds from what the stores' seam calls Lending, and gives them back. Account is our part of one
limit, wishes say what waits here, and sizes what changes while agents live.

Knows no commit, no shard and no driver: rounds go through a writer that it is given, in a thread of its own. All else
lives on the loop's thread.
"""

from .sizes import resize
from .units import Units

__all__ = ["Units", "resize"]
