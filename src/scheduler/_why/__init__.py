"""Why a job ran late, or not at all.

`answer.why` is pure. Knows how jobs stand, their records and their runs.
"""

from .ask import Whys
from .facts import RUN_GOES_ON
from .from_store import ReadableStore, why_from
from .verdict import Verdict, Why

__all__ = ["RUN_GOES_ON", "ReadableStore", "Verdict", "Why", "Whys", "why_from"]
