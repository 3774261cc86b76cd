"""Until when other nodes leave us our part of a store, and which of them are dead.

The package knows no job and no commit.
"""

from .lease import Lease
from .lease_guard import LeaseGuard
from .ways import StoreWays

__all__ = ["Lease", "LeaseGuard", "StoreWays"]
