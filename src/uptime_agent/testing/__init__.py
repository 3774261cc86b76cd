"""The suite that every kind of check must pass, the agent's and your own.

    from uptime_agent.testing import StreamConformance

    class TestMyKind(StreamConformance):
        @pytest.fixture
        def kind(self):
            return SMTP

        @pytest.fixture
        def examples(self):
            return [{"greeting": "220 "}]  # as in a file: each option, and the first table waits for an answer

        @pytest.fixture
        def well(self):
            async def serve(stream): ...  # what a server says to the first example

            return serve

`KindConformance` tests values, readers and secrets. `StreamConformance` adds checks over TCP, against good, silent and
hostile servers on 127.0.0.1; `DatagramConformance` over UDP: its `replies` answers a datagram. Override `url_of` if a
URL is more than scheme, host and port. Needs pytest with anyio's plugin, hypothesis and the extra `agent`.
"""

from __future__ import annotations

from ._rules_of_datagrams import DatagramConformance
from ._rules_of_kinds import Examples, KindConformance, UrlOf
from ._rules_of_streams import StreamConformance
from ._servers import Replies, Well

__all__ = ["DatagramConformance", "Examples", "KindConformance", "Replies", "StreamConformance", "UrlOf", "Well"]
