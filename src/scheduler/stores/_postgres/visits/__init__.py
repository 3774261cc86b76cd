"""Visits: a visitor, which is no node, audits the tables of a store over a connection of its own.

It does not know nodes, jobs or schedules: it says which rows are doubtful, and passes the question on. Lives on the
visitor's thread.
"""

from .fleet import read_fleet
from .server import read_server
from .visit import PostgresVisit

__all__ = ["PostgresVisit", "read_fleet", "read_server"]
