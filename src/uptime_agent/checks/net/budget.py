"""The budget of an exchange: bytes, and the pieces in which they come.

Each piece costs a turn of the event loop, so tiny pieces are cut off.
"""

from __future__ import annotations

from typing import Final

from attrs import define

from ..contract import CheckFailed

FREE_READS: Final = 500
BYTES_PER_READ: Final = 1024
"""A network's segment holds more."""

FREE_EVENTS: Final = 2_000
BYTES_PER_EVENT: Final = 256


@define(eq=False)
class Budget:
    """Bytes and pieces so far. Raises CheckFailed beyond the bound, without naming the peer."""

    most_bytes: int
    bytes: int = 0
    reads: int = 0
    events: int = 0

    def read(self, count: int) -> None:
        """Count bytes received in one piece."""
        self.reads += 1
        self.bytes += count
        if self.bytes > self.most_bytes:
            raise CheckFailed(f"cut off: it has sent {self.bytes:,} bytes, more than there is room for")
        if self.reads > FREE_READS + self.bytes // BYTES_PER_READ:
            raise CheckFailed(f"cut off: it sends its answer in tiny pieces, {self.reads:,} for {self.bytes:,} bytes")

    def event(self) -> None:
        """Count a step of reading received bytes, such as a chunk."""
        self.events += 1
        if self.events > FREE_EVENTS + self.bytes // BYTES_PER_EVENT:
            raise CheckFailed(f"cut off: its answer has tiny parts, {self.events:,} in {self.bytes:,} bytes")
