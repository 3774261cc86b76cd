"""How do agents share a store? Leases, owners of shards, and who is buried.

It does not know limits, votes, jobs or schedules.
"""

from .sharing import Place, PostgresSharing
from .statements import SharingStatements, make_way, show_presence

__all__ = ["Place", "PostgresSharing", "SharingStatements", "make_way", "show_presence"]
