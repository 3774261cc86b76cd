"""How large limits are, and how many units of the fleet's are usable here.

The package knows no commit, no shard and no driver.
"""

from .borrowing import Borrowing, NoUnits
from .resizing import resize
from .sizes import Fleet, Rate, Sizes, fleet, rate, sizes_of
from .units import Units

__all__ = ["Borrowing", "Fleet", "NoUnits", "Rate", "Sizes", "Units", "fleet", "rate", "resize", "sizes_of"]
