"""Cron expressions: their fields, days, times and zones, and advice about them.

Offers `Cron`; `croniter` reads the fields.
"""

from .cron import Cron
from .text import NICKNAMES, is_expression

__all__ = ["NICKNAMES", "Cron", "is_expression"]
