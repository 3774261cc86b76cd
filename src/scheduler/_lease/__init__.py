"""Until when the other agents leave our part of a store to us, and who of them is gone.

Lease renews ours in a thread of its own, looks around, buries the dead and claims what nobody has. Hearing, in another
thread, waits for the end of a neighbour's session. Belief says until when we rely on it, and
Ways whether the connections other than the lease's work.

Knows no job, no commit and no loop but that it moves. What is seen is handed on from the lease's thread.
"""

from .belief import Belief
from .lease import Lease
from .ways import Ways

__all__ = ["Belief", "Lease", "Ways"]
