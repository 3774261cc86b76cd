"""The verbs of a membership that only pass on to its node, whichever jobs that node has."""

from __future__ import annotations

from anyio.abc import TaskGroup

from .node import Node


class OnNode:
    is_patient = True
    reads_beside = True

    node: Node

    def begin(self, group: TaskGroup) -> None:
        group.start_soon(self.node.run, name="scheduler shards")

    def hint(self) -> None:
        """Any thread."""
        self.node.hint()

    def give_away(self) -> None:
        self.node.give_away()

    def end(self) -> None:
        self.node.end()

    def close(self) -> None:
        """Any thread."""
        self.node.close()

    def abandon(self) -> None:
        """Give up all jobs: others took them while we joined. Any thread."""
        self.node.let_go()
