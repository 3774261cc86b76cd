"""How do agents share a store? Leases, owners of shards, and who is buried.

It does not know limits, votes, jobs or schedules.
"""

from .sharing import Place, PostgresSharing
from .statements import Presence, SharingStatements, check_ours, make_way

__all__ = ["Place", "PostgresSharing", "Presence", "SharingStatements", "check_ours", "make_way"]
