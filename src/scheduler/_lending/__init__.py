"""How large limits are, and how many units of those that are the fleet's may be in use here now.

Sizes are what users say: so many at a time or in a window, for this agent or for all. Units borrows what is the
fleet's, in rounds, from what the stores' seam calls Lending, and gives it back. Account is our part of one limit,
wishes say what waits here, and resizing what changes while agents live.

Knows no commit, no shard and no driver: rounds go through a writer that it is given, in a thread of its own. All else
lives on the loop's thread.
"""

from .borrowing import Borrowing, NoUnits
from .resizing import resize
from .sizes import Fleet, Rate, Sizes, fleet, rate, sizes_of
from .units import Units

__all__ = ["Borrowing", "Fleet", "NoUnits", "Rate", "Sizes", "Units", "fleet", "rate", "resize", "sizes_of"]
