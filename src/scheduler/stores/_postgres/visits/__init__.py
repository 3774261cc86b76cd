"""How does somebody audit the tables of a store who is no agent? One visit, over a connection of its own.

It does not know agents, jobs or schedules: it says which rows are doubted, and hands on the question. It lives on the
thread of whoever visits.
"""

from .fleet import read_fleet
from .server import read_server
from .visit import PostgresVisit

__all__ = ["PostgresVisit", "read_fleet", "read_server"]
