"""Logs which labels jobs need and no node has, and when a node has them again. On the loop."""

from __future__ import annotations

from logging import getLogger

from ..._placement import lack_text
from ...stores import View

logger = getLogger(__name__)


class Unplaced:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def look(self, view: View) -> None:
        if not view.labelled and not self._known:
            return
        asked = {shard.where for shard in view.labelled.values() if not shard.owner}
        missing = {where for where in asked if view.lacks(where)}
        for where in sorted(missing - self._known):
            logger.warning("%s: jobs for such nodes wait", lack_text(where))
        for where in sorted(self._known - missing):
            logger.info("it is not so any more that %s: jobs for such nodes go on", lack_text(where))
        self._known = missing
