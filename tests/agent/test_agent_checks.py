"""What every kind of check promises, over each of them: the suite that a new check has to pass."""

import anyio
import pytest
from attrs import exceptions

from scheduler.agent.checks import KINDS
from scheduler.agent.result import Finding, Status
from scheduler.agent.trouble import judge
from scheduler.agent.url import parse_url

from .servers import closing, flooding, respond, silent


async def echo(server, stream):
    """Send back what comes."""
    while True:
        await stream.send(await stream.receive())


# name of the kind: (scheme, options that make it wait for an answer, a handler that satisfies it)
CASES = {
    "http": ("http", {"contains": "hello"}, respond(200, b"hello")),
    "tcp": ("tcp", {"send": "hello", "expect": "hello"}, echo),
}

