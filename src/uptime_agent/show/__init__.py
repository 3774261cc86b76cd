"""Displays of targets and history.

On the event loop; `history` prints without it.
"""

from __future__ import annotations

from .audit import audit_in_json, audit_lines
from .choice import display_on
from .display import Display, NotShown, Screen
from .fleet import fleet_in_json, fleet_lines, risks
from .history import begun, jobs_about, json_line, plain_line
from .monitor import Monitor
from .uptime import group_uptime_lines, json_uptime, plain_uptime, uptime_lines

__all__ = [
    "Display",
    "Monitor",
    "NotShown",
    "Screen",
    "audit_in_json",
    "audit_lines",
    "begun",
    "display_on",
    "fleet_in_json",
    "fleet_lines",
    "group_uptime_lines",
    "jobs_about",
    "json_line",
    "json_uptime",
    "plain_line",
    "plain_uptime",
    "risks",
    "uptime_lines",
]
