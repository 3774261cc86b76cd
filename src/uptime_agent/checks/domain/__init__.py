"""Checks of domain:// targets: a domain is registered, and for how long.

They ask the registry by RDAP over HTTP, once the list of registries has named it. An answer is kept for six hours, also
over a restart.
"""

from __future__ import annotations

from .domain_check import DOMAIN

__all__ = ["DOMAIN"]
