"""How notes of the journal get into the store.

Commits send them, batch after batch, and act on the answers. Gathering says how long a batch is kept open, Pruning when
history is cut, and LockedRows which parts wait for other sessions. A Writer makes calls that wait, one after another.

The package knows no other node and no queue: `Consequences` learn what became of each commit. It lives on the loop's
thread. Only a Writer calls a store that waits, in a thread of its own.
"""

from .batch_window import FULL
from .commits import Commits
from .consequences import Consequences, NoConsequences
from .writer import InlineWriter, ThreadWriter, Writer, in_turn

__all__ = ["FULL", "Commits", "Consequences", "InlineWriter", "NoConsequences", "ThreadWriter", "Writer", "in_turn"]
