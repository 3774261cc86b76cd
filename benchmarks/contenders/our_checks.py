"""The agent's HTTP check as the agent makes it: timeouts, phases, bounds and the verdict included."""

import asyncio

from answering import measured, server
from child import Values, serve

from scheduler.agent.checks import BY_SCHEME, PORTS, CheckResult, Family, Mode, Resolver, Status, TargetCheck
from scheduler.agent.text import Redactor, parse_url
from timerqueue import SystemClock


def http_check(checks: int, at_once: int) -> Values:
    """Each checked at the address that its URL names."""
    with server() as port:
        return asyncio.run(_checked(port, checks, at_once))


async def _checked(port: int, checks: int, at_once: int) -> Values:
    target_check = TargetCheck(
        check=BY_SCHEME["http"].make(url=parse_url(f"http://127.0.0.1:{port}/", PORTS), contains="hello"),
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
        result = await target_check.run()
        assert isinstance(result, CheckResult)
        assert result.status is Status.UP

    return await measured(check, checks, at_once)


if __name__ == "__main__":
    serve({"http_check": http_check}, distribution="timerqueue")
