"""The agent's HTTP check as its probe makes it: timeouts, phases, bounds and the verdict included."""

import asyncio

from answering import measured, server
from child import Values, serve

from scheduler.agent.checks.contract.result import CheckResult, Status
from scheduler.agent.checks.http.http_check import SCHEMES, HttpCheck
from scheduler.agent.checks.net.resolve import Family, Resolver
from scheduler.agent.checks.target_check import Mode, TargetCheck
from scheduler.agent.text.redact import Redactor
from scheduler.agent.text.url import parse_url
from timerqueue import SystemClock


def http_check(checks: int, at_once: int) -> Values:
    """Each checked at the address that its URL names."""
    with server() as port:
        return asyncio.run(_checked(port, checks, at_once))


async def _checked(port: int, checks: int, at_once: int) -> Values:
    probe = TargetCheck(
        check=HttpCheck(url=parse_url(f"http://127.0.0.1:{port}/", SCHEMES), contains="hello"),
        needs=(),
        timeout=10.0,
        mode=Mode.ANY,
        family=Family.ANY,
        degraded_above=None,
        resolver=Resolver(),
        clock=SystemClock(),
        redactor=Redactor(),
    )

    async def check() -> None:
        result = await probe.run()
        assert isinstance(result, CheckResult)
        assert result.status is Status.UP

    return await measured(check, checks, at_once)


if __name__ == "__main__":
    serve({"http_check": http_check}, distribution="timerqueue")
