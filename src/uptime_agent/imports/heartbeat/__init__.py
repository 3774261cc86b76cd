"""Heartbeat, of Elastic.

Reads a heartbeat.yml, a file of monitors.d, or that folder.
"""

from __future__ import annotations

from .heartbeat import read_heartbeat

__all__ = ["read_heartbeat"]
