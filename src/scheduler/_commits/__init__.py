"""How what the journal has noted gets into the store.

Commits send it, batch after batch, and act on the answers. Gathering says how long a batch is kept open, Pruning when
history is cut, and LockedRows what waits for other sessions. A Writer carries out calls that wait, one after another.

Knows no other node and no queue: `Consequences` are told what became of each commit. Lives on the loop's thread, but
for the calls of a store that waits, which a Writer makes in a thread of its own.
"""

from .commits import Commits
from .consequences import Consequences, NoConsequences
from .gathering import FULL
from .writer import InlineWriter, ThreadWriter, Writer, in_turn

__all__ = ["FULL", "Commits", "Consequences", "InlineWriter", "NoConsequences", "ThreadWriter", "Writer", "in_turn"]
