"""blackbox_exporter: its modules, as its documentation of 0.28 describes them, each with its targets.

Offers `read_blackbox`. The exporter's own file names no targets. They stand in Prometheus: so they are given on the
command line, or read out of the scrape configuration beside it. Asks no service discovery but files.
"""

from __future__ import annotations

from .blackbox import read_blackbox

__all__ = ["read_blackbox"]
