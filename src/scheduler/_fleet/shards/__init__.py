"""How the jobs of a shared store's shards come here, and how they go to other nodes.

Arrivals take up the jobs of shards that have become ours. Departures hand on shards that others own by right, in
portions that Portions chooses. Unplaced logs labels that no node has.

The package knows neither leases nor commits: its caller says which shards are whose. It lives on the loop's thread,
except for questions to the store, which wait in threads.
"""

from .handoff import WHOSE_JOBS_RUN, Handoff
from .moves import Moves
from .takeover import Takeover
from .unplaced import Unplaced

__all__ = ["WHOSE_JOBS_RUN", "Handoff", "Moves", "Takeover", "Unplaced"]
