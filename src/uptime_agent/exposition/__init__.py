"""The figures of an agent for Prometheus: of its scheduler, and of its targets.

Needs the extra `metrics`, so only what answers /metrics imports it.
"""

from __future__ import annotations

from .body import TargetCollector, render
from .figures import TargetFigures, figures_of

__all__ = ["TargetCollector", "TargetFigures", "figures_of", "render"]
