"""A visitor audits the tables, and asks nodes about doubtful rows.

It has its own connection and thread.
"""

from .fleet import read_fleet
from .server import read_server
from .visit import PostgresVisit

__all__ = ["PostgresVisit", "read_fleet", "read_server"]
