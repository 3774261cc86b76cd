"""Uptime and latency, weighted by time.

Pure: any thread.
"""

from __future__ import annotations

from .latency import Latency, latency_over
from .past import Past, Span, parse_past, past_after
from .share import WINDOWS, Uptime, uptime_over
from .together import together

__all__ = [
    "WINDOWS",
    "Latency",
    "Past",
    "Span",
    "Uptime",
    "latency_over",
    "parse_past",
    "past_after",
    "together",
    "uptime_over",
]
