"""Heartbeat, of Elastic: the monitors of a heartbeat.yml, of a file of monitors.d, or of all files of that folder.

Offers `read_heartbeat`. Keys with dots and tables within tables are the same there, and so they are here.
"""

from __future__ import annotations

from .heartbeat import read_heartbeat

__all__ = ["read_heartbeat"]
