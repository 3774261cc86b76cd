"""Any bytes at the control API: they change nothing without a token, and end their own exchange."""

import logging
import random

import anyio

from asgi_kit import check
from fuzzed_requests import OF_API, mutated
from kit import PATIENCE, examples
from push_kit import rest_of


async def test_any_bytes_change_nothing(running, caplog):
    """In any pieces, over TCP; the log has no defect, and the next caller is answered."""
    draw = random.Random(26)
    async with running(check("site")) as agent:
        before = (await agent.local("GET", "/v1/jobs/site")).json
        with caplog.at_level(logging.ERROR, logger="uptime_agent"), anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                for _ in range(examples(200)):
                    group.start_soon(sent, agent, mutated(draw, OF_API))
            found = (await agent.local("GET", "/v1/jobs/site")).json
        assert caplog.records == []
        assert (found["spec"], found["pauses"]) == (before["spec"], [])
        assert [each["id"] for each in (await agent.local("GET", "/v1/jobs")).json["jobs"]] == ["site"]


async def sent(agent, pieces):
    """Send these pieces, say that there are no more, and read what comes."""
    async with await agent.nobody.connect() as stream:
        try:
            for each in pieces:
                await stream.send(each)
            await stream.send_eof()
        except (anyio.BrokenResourceError, OSError):
            return
        answer = await rest_of(stream)
    assert not answer.startswith(b"HTTP/1.1 5") or b"503" in answer[:20] or b"501" in answer[:20], answer
