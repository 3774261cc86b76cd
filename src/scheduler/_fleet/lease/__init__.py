"""Until when other nodes leave us our part of a store, and which of them are dead."""

from .lease import Lease
from .lease_guard import LeaseGuard
from .ways import Ways

__all__ = ["Lease", "LeaseGuard", "Ways"]
