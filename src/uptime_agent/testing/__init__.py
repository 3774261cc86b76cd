"""Is it a kind of check? The suite that every kind must pass, the agent's and your own.

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

`KindConformance` is for every kind: its values, its readers, its secrets. `StreamConformance` adds what a check over
TCP promises, against servers on 127.0.0.1. These are up, refuse, close at once, say nothing, flood, send tiny pieces
or talk garbage. `DatagramConformance` does the same over UDP; its `replies` says what a server sends back to a
datagram. If a URL is more than scheme, host and port, override the fixture `url_of`. Async tests need anyio's pytest
plugin, which comes with anyio. Knows no kind of check. Needs pytest, hypothesis and the extra `agent`.
"""

from __future__ import annotations

from ._rules_of_datagrams import DatagramConformance
from ._rules_of_kinds import Examples, KindConformance, UrlOf
from ._rules_of_streams import StreamConformance
from ._servers import Replies, Well

__all__ = ["DatagramConformance", "Examples", "KindConformance", "Replies", "StreamConformance", "UrlOf", "Well"]
