"""Is there room? Limits, their units, and the work that waits for units.

Knows ranks and units, and neither tasks nor time.
"""

from .limit import HeldUnits, Lender, LimitStatistics
from .limits import Limits
from .needs import Needs, needs_of

__all__ = ["HeldUnits", "Lender", "LimitStatistics", "Limits", "Needs", "needs_of"]
