"""What tests under the names of other products share: what the agent's own have, and schedulers one after another."""

import pytest

from agent_kit import answers, serve, target_check, up
from timescaledb_lives import Lives

__all__ = ["answers", "serve", "target_check", "up"]


@pytest.fixture
def lives(clock, events):
    """Play one scheduler after another over one store."""
    return Lives(clock, events)
