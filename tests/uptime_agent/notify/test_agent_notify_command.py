"""The command line tells over channels, and history tells what was told."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def anyio_backend():
    """Run on one backend: the agent is a process of its own, whatever loop the test has."""
    return "asyncio"


@pytest.fixture
def told(config, hook):
    """Write a configuration that tells the receiver."""
    return config("""
        [[channel]]
        name = "ops"
        kind = "webhook"
        url = { env = "OPS_HOOK" }
    """), {"OPS_HOOK": f"http://127.0.0.1:{hook.port}/c4n4ry-s3cr3t"}


async def test_a_channel_is_tried_by_hand(ran, told, hook):
    """Before one needs it; and what does not work is said without its secrets."""
    file, variables = told
    code, out, _ = await ran("notify", "test", "ops", file, **variables)
    assert (code, out) == (0, f"channel ops (webhook to http://127.0.0.1:{hook.port}) has taken the test message\n")
    assert [body["kind"] for _, _, body in hook.got] == ["test"]
    hook.status = 403
    code, _, said = await ran("notify", "test", "ops", file, **variables)
    assert (code, "answered with status 403" in said, "c4n4ry" in said) == (1, True, False)
    code, _, said = await ran("notify", "test", "opps", file, **variables)
    assert (code, "did you mean 'ops'?" in said) == (2, True)


async def test_what_was_told_stands_in_history(started, ran, told, hook):
    """With the words, and without the secret, which stands in no row either."""
    file, variables = told
    async with started("run", file, "--plain", **variables) as agent:
        await agent.line_with("told ops: db is down")
        agent.process.terminate()
        await agent.end()
    ((_, _, body),) = hook.got
    assert (body["kind"], body["target"], body["key"]) == ("trigger", "db", f"{body['incident']}:ops:trigger")
    code, out, _ = await ran("history", "--config", file, "--limit", "1000")  # without the variable
    assert code == 0
    (line,) = [line for line in out.splitlines() if "notify:" in line]
    assert f"DELIVERED   notify:{body['key']}  db is down" in line
    content = b"".join(each.read_bytes() for each in Path(file).parent.glob("uptime.db*"))
    assert b"c4n4ry" not in content + out.encode()


async def test_what_is_open_when_the_agent_dies_is_resolved_by_the_next(started, told, hook, serve, answers, free_port):
    """With the key of the same incident."""
    file, variables = told
    async with started("run", file, "--plain", **variables) as agent:
        await agent.line_with("told ops: db is down")
        agent.process.kill()
        await agent.end()
    await serve(answers.respond(), port=free_port)
    async with started("run", file, "--plain", **variables) as agent:
        await agent.line_with("told ops: db is up again")
        agent.process.terminate()
        await agent.end()
    trigger, resolved = {body["key"]: body for _, _, body in hook.got}.values()  # told twice, if not noted
    assert resolved["key"] == f"{trigger['incident']}:ops:resolved"
    assert resolved["incident"] == trigger["incident"]


async def test_a_message_that_is_not_taken_is_told_once(ran, config, free_port):
    """By a notice. The log says it with -v, of each attempt."""
    file = config(f'[[channel]]\nname = "ops"\nkind = "webhook"\nurl = "http://127.0.0.1:{free_port}/"\n')
    _, out, err = await ran("run", file, "--for", "1s")
    assert out.count(f"channel ops: connection refused by 127.0.0.1:{free_port}; messages are kept") == 1
    assert err == ""
    _, _, err = await ran("-v", "run", file, "--for", "1s")
    assert "a run of job 'notify:db-" in err
