"""The heartbeat: requests by which somebody outside knows that the agent is well, and whose absence is the alarm.

Offers `read_heartbeat` for the configuration, and the `Heart` that makes the requests. Does not know what a target is,
or who is told of one. Lives on the event loop.
"""

from __future__ import annotations

from .heart import Heart, heart_of
from .plan import Heartbeat, read_heartbeat
from .vitals import Vitals

__all__ = ["Heart", "Heartbeat", "Vitals", "heart_of", "read_heartbeat"]
