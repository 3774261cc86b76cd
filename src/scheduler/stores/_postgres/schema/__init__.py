"""Making, migrating and recognising the tables.

Rows, nodes and commits are unknown here.
"""

from .preparing import check_server, preflight, prepare, version_of
from .steps import VERSION

__all__ = ["VERSION", "check_server", "preflight", "prepare", "version_of"]
