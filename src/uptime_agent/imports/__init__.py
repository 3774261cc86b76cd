"""Files of other monitors: what they check becomes a configuration of ours, with what could not be carried over.

Offers `IMPORTERS`, which read a file of each of them, and `imported`, the text of our file. Knows nothing of what runs.
Pure but for the reading of files; lives on the main thread of a command.
"""

from __future__ import annotations

from typing import Final

from .blackbox import read_blackbox
from .foreign import NotImported
from .gatus import read_gatus
from .heartbeat import read_heartbeat
from .kuma import read_kuma
from .writing import Imported, imported

IMPORTERS: Final = {"gatus": read_gatus, "blackbox": read_blackbox, "kuma": read_kuma, "heartbeat": read_heartbeat}

__all__ = ["IMPORTERS", "Imported", "NotImported", "imported"]
