"""How nodes share a store: leases, owners of shards, and burials.

It does not know limits, votes, jobs or schedules.
"""

from .sharing import Place, PostgresSharing
from .statements import Presence, SharingStatements, check_ours, make_way

__all__ = ["Place", "PostgresSharing", "Presence", "SharingStatements", "check_ours", "make_way"]
