"""The agent's HTTP check as the agent makes it: timeouts, phases, bounds and the verdict included."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from answering import NAME, certificate_in, measured, server
from child import Values, serve

from timerqueue import SystemClock
from uptime_agent.checks import BY_SCHEME, PORTS, CheckResult, Family, Mode, Resolver, Status, TargetCheck
from uptime_agent.text import Redactor, parse_url


def http_check(checks: int, at_once: int) -> Values:
    """Each checked at the address that its URL names."""
    with server() as port:
        return asyncio.run(_checked(f"http://127.0.0.1:{port}/", checks, at_once))


def https_check(checks: int, at_once: int) -> Values:
    """Each with a handshake of its own, and its certificate checked."""
    with tempfile.TemporaryDirectory() as folder:
        certificate = certificate_in(Path(folder))
        with server(certificate) as port:
            url = f"https://{NAME}:{port}/"
            return asyncio.run(_checked(url, checks, at_once, ca_file=str(certificate)))


async def _checked(url: str, checks: int, at_once: int, **options: Any) -> Values:
    target_check = TargetCheck(
        check=BY_SCHEME["http"].make(url=parse_url(url, PORTS), contains="hello", **options),
        needs=(),
        timeout=10.0,
        mode=Mode.ANY,
        family=Family.ANY,
        degraded_above=None,
        resolver=Resolver({NAME: ("127.0.0.1",)}),
        clock=SystemClock(),
        redactor=Redactor(),
    )

    async def check() -> None:
        result = await target_check.run()
        assert isinstance(result, CheckResult)
        assert result.status is Status.UP, result.error

    return await measured(check, checks, at_once)


if __name__ == "__main__":
    serve({"http_check": http_check, "https_check": https_check}, distribution="timerqueue")
