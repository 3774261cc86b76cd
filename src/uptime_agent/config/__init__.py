"""The configuration: what is checked, how often, within which limits, stored where.

Starts nothing and opens no store. On the main thread.
"""

from __future__ import annotations

from ..toml import without_collections
from .api import ANYBODY, SCOPES, Api, Proxies, is_in
from .config import FILE_OWNER, LARGEST_FILE, Config, parse_config, read_config
from .network import Network, Push
from .place import MetricsPlace, StorePlace, store_place
from .preview import config_lines, over
from .relations import spoken_for
from .rights import warnings_about, warnings_about_owners
from .target import Start, Target
from .watch import watch_config

__all__ = [
    "ANYBODY",
    "FILE_OWNER",
    "LARGEST_FILE",
    "SCOPES",
    "Api",
    "Config",
    "MetricsPlace",
    "Network",
    "Proxies",
    "Push",
    "Start",
    "StorePlace",
    "Target",
    "config_lines",
    "is_in",
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
