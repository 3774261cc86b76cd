"""Heartbeat, of Elastic: monitors of a heartbeat.yml, of a file of monitors.d, or of that folder.

Offers `read_heartbeat`. Dotted keys and nested tables mean the same.
"""

from __future__ import annotations

from .heartbeat import read_heartbeat

__all__ = ["read_heartbeat"]
