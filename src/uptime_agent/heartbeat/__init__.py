"""The agent's own health, reported outside.

Reports only while checks, channels and the store work.
"""

from __future__ import annotations

from .heart import Heart, heart_of
from .outage import OURS, StoreOutage
from .plan import Heartbeat, read_heartbeat
from .vitals import Vitals

__all__ = ["OURS", "Heart", "Heartbeat", "StoreOutage", "Vitals", "heart_of", "read_heartbeat"]
