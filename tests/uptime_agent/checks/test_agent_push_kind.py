"""PUSH is a kind of check like the others; what it makes of signals is tested in tests/uptime_agent/push."""

import pytest

from uptime_agent.checks.push import PUSH
from uptime_agent.testing import KindConformance


class TestPush(KindConformance):
    """push://, which dials nobody."""

    @pytest.fixture
    def kind(self):
        return PUSH

    @pytest.fixture
    def examples(self):
        return [{"token": "backup-7f3a9c51d2e8", "grace": "5m"}]
