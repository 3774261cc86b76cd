"""Who changed what: changes by users, noted with their actor, reason, and values before and after.

Runs and the scheduler's own acts are unknown here.
"""

from .acting import acting_as
from .book import ChangeBook
from .change import Change
from .noted import NotedRegistry
from .sizes import said_of_sizes

__all__ = ["Change", "ChangeBook", "NotedRegistry", "acting_as", "said_of_sizes"]
