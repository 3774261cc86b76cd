"""How notes of the journal get into the store, in batches.

The package knows no other node and no queue: `Consequences` hear of each commit.
"""

from .batch_window import FULL
from .commits import Commits
from .consequences import Consequences, NoConsequences
from .writer import InlineWriter, ThreadWriter, Writer, in_turn

__all__ = ["FULL", "Commits", "Consequences", "InlineWriter", "NoConsequences", "ThreadWriter", "Writer", "in_turn"]
