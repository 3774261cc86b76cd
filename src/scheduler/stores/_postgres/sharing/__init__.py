"""Leases, owners of shards, and burials.

Limits, votes, jobs and schedules are unknown here.
"""

from .sharing import PostgresSharing, SharingPlace
from .statements import Presence, SharingStatements, check_ours, make_way

__all__ = ["PostgresSharing", "Presence", "SharingPlace", "SharingStatements", "check_ours", "make_way"]
