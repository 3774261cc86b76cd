"""How the jobs of a shared store's shards come to us, and how they go to others.

Arrivals take up the jobs of shards that have become ours. Departures hand on shards that are others' by right, in
portions that are chosen by Portions. Unplaced tells of labels that no agent has.

Knows neither leases nor commits: which shards are whose is handed in. All of it lives on the loop's thread, but for the
questions to the store, which wait in threads.
"""

from .arrivals import Arrivals
from .departures import WHOSE_JOBS_RUN, Departures
from .moves import Moves
from .unplaced import Unplaced

__all__ = ["WHOSE_JOBS_RUN", "Arrivals", "Departures", "Moves", "Unplaced"]
