"""Channels that leave messages lying."""

from __future__ import annotations

from collections.abc import Collection

from .entries import FAR, Entries, OutboxEntry, instant_of


class Backlog:
    """Messages that channels leave lying. `failing`: channels that refused their last message."""

    def __init__(self, entries: Entries, failing: Collection[str]) -> None:
        self._entries = entries
        self._failing = failing
        self._have_taken: set[str] = set()

    def taken(self, channel: str) -> None:
        """Note that a channel works."""
        self._have_taken.add(channel)

    def stuck(self, channels: Collection[str], now: float) -> dict[str, bool]:
        """Whether each channel took nothing, though a message waited."""
        have_taken, self._have_taken = self._have_taken, set()
        return {name: name not in have_taken and self._is_stuck(name, now) for name in channels}

    def _is_stuck(self, channel: str, now: float) -> bool:
        return any(self._is_lying(entry, now) for entry in self._entries.of_channel(channel))

    def _is_lying(self, entry: OutboxEntry, now: float) -> bool:
        """Whether a message waits for its channel, not for the rate."""
        if not self._entries.is_ready(entry, now):
            return False
        next_start = entry.job.next_start
        has_turn = next_start is not None and instant_of(now) < next_start < instant_of(now) + FAR
        return not has_turn or entry.message.channel in self._failing
