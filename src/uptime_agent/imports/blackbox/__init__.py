"""blackbox_exporter: its modules, as documented for 0.28, each with its targets.

The exporter's own file names no targets. They come from the command line, or from the scrape configuration next to the
file. Of service discovery, only files are read.
"""

from __future__ import annotations

from .blackbox import read_blackbox

__all__ = ["read_blackbox"]
