"""Files of other monitors become our configuration.

What cannot be carried over is told in words.
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
