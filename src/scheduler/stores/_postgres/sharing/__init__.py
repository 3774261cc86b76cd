"""Leases, owners of shards, and burials.

Limits, votes, jobs and schedules are unknown here.
"""

from .sharing import Place, PostgresSharing
from .statements import Presence, SharingStatements, check_ours, make_way

__all__ = ["Place", "PostgresSharing", "Presence", "SharingStatements", "check_ours", "make_way"]
