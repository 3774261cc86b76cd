"""Checks of domain:// targets: a domain is registered, and for how long.

Offers the kind `DOMAIN`. Asks for the list of registries, unless one is named, then the registry, by RDAP over HTTP. An
answer is kept for six hours, also over a restart. Lives on the event loop.
"""

from __future__ import annotations

from .domain_check import DOMAIN

__all__ = ["DOMAIN"]
