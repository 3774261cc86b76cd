"""blackbox_exporter, as documented for 0.28.

Its own file names no targets: they come from the command line or the scrape configuration next to it. Of service
discovery, only files are read.
"""

from __future__ import annotations

from .blackbox import read_blackbox

__all__ = ["read_blackbox"]
