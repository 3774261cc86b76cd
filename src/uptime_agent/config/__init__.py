"""The configuration: what is checked, how often, within which limits, stored where.

Starts nothing and opens no store. On the main thread.
"""

from __future__ import annotations

from .collector import without_collections
from .config import LARGEST_FILE, Config, parse_config, read_config
from .network import Network, Push
from .place import MetricsPlace, StorePlace, store_place
from .preview import config_lines, over
from .relations import spoken_for
from .rights import warnings_about, warnings_about_owners
from .target import Start, Target
from .watch import watch_config

__all__ = [
    "LARGEST_FILE",
    "Config",
    "MetricsPlace",
    "Network",
    "Push",
    "Start",
    "StorePlace",
    "Target",
    "config_lines",
    "over",
    "parse_config",
    "read_config",
    "spoken_for",
    "store_place",
    "warnings_about",
    "warnings_about_owners",
    "watch_config",
    "without_collections",
]
