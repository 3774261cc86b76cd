"""The agent's own health: it reports outside that it is well, and tells people when it cannot store.

Offers `read_heartbeat` for the configuration, `Heart`, which requests a URL while all is well, and `StoreOutage`, which
tells of outages of the store. Knows no target. Lives on the event loop.
"""

from __future__ import annotations

from .heart import Heart, heart_of
from .outage import OURS, StoreOutage
from .plan import Heartbeat, read_heartbeat
from .vitals import Vitals

__all__ = ["OURS", "Heart", "Heartbeat", "StoreOutage", "Vitals", "heart_of", "read_heartbeat"]
