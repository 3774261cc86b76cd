"""blackbox_exporter, as documented for 0.28.

Targets come from the command line or the scrape configuration next to its file. Of service discovery, only files are
read.
"""

from __future__ import annotations

from .blackbox import read_blackbox

__all__ = ["read_blackbox"]
