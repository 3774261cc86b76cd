"""Which instants does a cron expression name? Its fields, days, times and zones, and what is wrong with it."""

from .cron import Cron
from .text import NICKNAMES, is_expression

__all__ = ["NICKNAMES", "Cron", "is_expression"]
