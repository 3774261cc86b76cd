"""The lease: until when other nodes leave our part of a store to us, and which of them are dead.

Lease renews it in a thread of its own, looks around, buries dead nodes and claims free shards. PeerWatch, in another
thread, waits for the end of a neighbour's session. LeaseGuard says until when we rely on the lease. Ways says whether
connections other than the lease's work.

The package knows no job and no commit. Of the loop it knows only whether it moves. The thread of the lease hands on
what it has seen.
"""

from .lease import Lease
from .lease_guard import LeaseGuard
from .ways import Ways

__all__ = ["Lease", "LeaseGuard", "Ways"]
