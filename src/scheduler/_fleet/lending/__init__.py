"""How large limits are, and how many units of the fleet's limits may be in use here now.

Sizes are what users say: a number at a time or in a window, for this node or for all. Units borrows units of the
fleet's limits, in rounds, from the Lending of a store, and gives them back. Account is our part of one limit, wishes
say what waits here, and resizing changes limits while nodes live.

The package knows no commit, no shard and no driver: it is given a writer for rounds, which has a thread of its own.
Everything else lives on the loop's thread.
"""

from .borrowing import Borrowing, NoUnits
from .resizing import resize
from .sizes import Fleet, Rate, Sizes, fleet, rate, sizes_of
from .units import Units

__all__ = ["Borrowing", "Fleet", "NoUnits", "Rate", "Sizes", "Units", "fleet", "rate", "resize", "sizes_of"]
