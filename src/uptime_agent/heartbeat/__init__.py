"""The agent's own health: who hears that it is well, and who is told that it cannot remember.

Offers `read_heartbeat` for the configuration, the `Heart` that asks for a URL while all is well, and `StoreOutage`,
which makes an incident of an outage of the store. Does not know how targets stand. Lives on the event loop.
"""

from __future__ import annotations

from .heart import Heart, heart_of
from .outage import OURS, StoreOutage
from .plan import Heartbeat, read_heartbeat
from .vitals import Vitals

__all__ = ["OURS", "Heart", "Heartbeat", "StoreOutage", "Vitals", "heart_of", "read_heartbeat"]
