"""The tables in PostgreSQL: how they are made, brought up to date and recognised.

It knows no rows, no nodes and no commits.
"""

from .preparing import check_server, preflight, prepare, version_of
from .steps import VERSION

__all__ = ["VERSION", "check_server", "preflight", "prepare", "version_of"]
