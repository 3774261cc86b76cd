"""How shards of a shared store come here with their jobs, and how they go.

The package knows neither leases nor commits.
"""

from .handoff import WHOSE_JOBS_RUN, Handoff
from .moves import Moves
from .takeover import Takeover
from .unplaced import Unplaced

__all__ = ["WHOSE_JOBS_RUN", "Handoff", "Moves", "Takeover", "Unplaced"]
