"""Uptime: how much of a time a target was up, by the clock and not by the number of checks, and how fast it answered.

Offers `Past`, which goes on with each check and fits into a line of history, and what is counted of it. Does not know
who checks, when, or where history lies. Pure: any thread.
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
