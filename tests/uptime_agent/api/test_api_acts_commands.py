"""Commands of people to a running agent, over its socket; and from its store where none answers."""

import json
import signal

from asgi_kit import Answered, check as check_of, connect_to, written
from kit import until
from push_kit import rest_of

RARE = "5000d"
"""No check comes by its schedule during a test."""


def check(name, *more, **options):
    """Write a check that comes when it is asked for."""
    return check_of(name, *more, interval=RARE, **options)


ANN = ("--actor", "ann")
SITE = check("site", 'tags = ["web"]', 'start = "now"')
GROUP = '[[group]]\nname = "shop"\nmembers = ["site"]\n'


async def says(type_, *words, **environment):
    """Type a command that works; return what it says."""
    code, said = await type_(*words, **environment)
    assert code == 0, said
    return said


async def test_an_act_is_done_when_the_command_ends(running, type_):
    """In the words that the store would bring, and the agent need not follow."""
    async with running(SITE + GROUP) as agent:
        acts = agent.display.view.acts
        await until(lambda: agent.display.view.targets[0].incident is not None)
        said = await says(type_, "ack", agent.file, "site", "--reason", "disk ordered", *ANN)
        assert said == "site is acknowledged by ann: disk ordered\n"
        assert acts.acts_of("site").acknowledged.actor == "ann"
        said = await says(type_, "incidents", agent.file)
        assert "site  down since" in said
        assert "refused" in said
        assert "(acknowledged by ann: disk ordered)\n" in said
        assert "the group shop  down since" in said
        found = [json.loads(line) for line in (await says(type_, "incidents", agent.file, "--json")).splitlines()]
        assert [each["acknowledged"] is not None for each in found if "target" in each] == [True]
        said = await says(type_, "ack", agent.file, "shop", "--reason", "disk ordered", *ANN)
        assert said == "the group shop is acknowledged by ann: disk ordered\n"
        assert await says(type_, "ack", agent.file, "shop", "--end", *ANN)
        for scope in (("site",), ("--group", "shop"), ("--tag", "web")):
            for act, *length in (("silence", "--for", "2h"), ("maintain",)):
                await says(type_, act, agent.file, *scope, *length, "--reason", "x", *ANN)
                assert len(acts.all()) == 2
                said = await says(type_, act, agent.file, *scope, "--end", *ANN)
                assert said.startswith("ann ends the ")
                assert len(acts.all()) == 1
        assert (await says(type_, "ack", agent.file, "site", "--end", *ANN)).startswith("ann ends the acknowledge")
        said = await says(type_, "pause", agent.file, "site", "--for", "3d", "--reason", "moving house")
        assert said.startswith("site is paused until 2")
        assert "shop" not in await says(type_, "acts", agent.file)
        await says(type_, "resume", agent.file, "site", *ANN)
        assert acts.all() == []
        before = agent.display.view.targets[0].checks
        assert await says(type_, "check-now", agent.file, "site", *ANN) == "site is checked by ann: asked by hand\n"
        await until(lambda: agent.display.view.targets[0].checks > before)


async def test_what_the_agent_refuses_is_told(running, type_):
    """Nothing is written behind its back."""
    async with running(check("site")) as agent:
        code, said = await type_("resume", agent.file, "site")
        assert (code, "site is not paused" in said) == (1, True)
        assert agent.display.view.acts.all() == []


async def test_a_token_acts_in_its_own_name(running, type_):
    """And in no other, unless it may do everything."""
    async with running(check("site")) as agent:
        secret = {"TIMERQUEUE_TOKEN": (await says(type_, "token", "add", "bob", agent.file, "--scope", "operate"))[:-1]}
        said = await says(type_, "maintain", agent.file, "site", "--reason", "disks", **secret)
        assert said == "site is in maintenance by bob: disks\n"
        code, said = await type_("maintain", agent.file, "site", "--reason", "disks", *ANN, **secret)
        assert (code, "bob may not act as 'ann'" in said) == (1, True)


async def test_why_is_asked_of_the_agent_and_else_of_its_store(running, type_):
    """And it says which one answers."""
    async with running(SITE + check("other")) as agent:
        await until(lambda: agent.scheduler.get("site").statistics().runs)
        await agent.scheduler.flush()
        said = await says(type_, "why", "site", agent.file)
        assert said.startswith("Job 'site' ran its start of ")
        found = json.loads(await says(type_, "why", "site", agent.file, "--json"))
        assert found["verdict"].startswith("ran")
        await says(type_, "pause", agent.file, "other", "--reason", "moving house", *ANN)
        assert "moving house" in await says(type_, "why", "other", agent.file)
        said = await says(type_, "why", "site", agent.file, "--at", "2001-01-01T00:00:00Z")
        assert "2001-01-01" in said
        url = f"http://127.0.0.1:{agent.config.api.listen[1]}"
        code, said = await type_("why", "site", "--agent", url)
        assert (code, "token" in said) == (1, True)
        code, said = await type_("why", "none", agent.file)
        assert (code, "none" in said) == (1, True)
    said = (await says(type_, "why", "site", agent.file)).splitlines()
    assert "no agent answers" in said[0]
    assert "this comes from the store" in said[0]
    assert said[1].startswith("Job 'site' ran its start of ")
    assert "moving house" in await says(type_, "why", "other", agent.file)
    code, said = await type_("incidents", agent.file)
    assert (code, "no agent answers" in said) == (1, True)
    code, said = await type_("why", "site")
    assert (code, "either its FILE, or --agent URL" in " ".join(said.split())) == (2, True)


async def test_an_act_without_an_agent_waits_in_the_store(running, type_):
    """For the next one, as the command says."""
    async with running(check("site")) as agent:
        await agent.scheduler.flush()
    said = await says(type_, "pause", agent.file, "site", "--reason", "moving house", *ANN)
    assert said == "site is paused by ann: moving house; a running agent follows within a second\n"
    async with running() as agent:
        assert agent.display.view.acts.acts_of("site").paused.reason == "moving house"


async def test_a_day_from_an_empty_folder(started, ran, tmp_path):
    """A target comes with the file, is paused, acknowledged, explained, silenced, checked and shown."""
    file = tmp_path / "uptime.toml"
    file.write_text(f"[api]\n{check('shop')}")

    async def typed(*words):
        code, out, err = await ran(*words)
        assert (code, err) == (0, "")
        return out

    async def shown(path):
        async with await connect_to(tmp_path / "uptime.api" / "socket") as stream:
            await stream.send(written("GET", path))
            return Answered(await rest_of(stream)).json

    async with started("run", file, "--plain") as agent:
        await agent.line_with("checks 1 target")
        file.write_text(f"[api]\n{check('shop')}{SITE}")
        await agent.line_with("-> DOWN", "site")
        assert "site  down since" in await typed("incidents", file)
        assert await typed("ack", file, "site", "--reason", "disk ordered", *ANN)
        await agent.line_with("NOTICE", "site is acknowledged by ann: disk ordered")
        assert await typed("pause", file, "shop", "--reason", "moving house", *ANN)
        assert "moving house" in await typed("why", "shop", file)
        assert "ran its start of" in await typed("why", "site", file)
        assert await typed("silence", file, "--tag", "web", "--for", "2h", "--reason", "deployment", *ANN)
        assert await typed("check-now", file, "site", *ANN)
        await agent.line_with("DOWN", "site", "acknowledged by ann: disk ordered; silenced until")
        site, shop = (await shown("/v1/targets"))["targets"][::-1]
        assert (site["status"], [each["act"] for each in site["acts"]]) == ("down", ["acknowledge", "silence"])
        assert (shop["status"], [each["act"] for each in shop["acts"]]) == (None, ["pause"])
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.end() == 0
    assert len((await typed("acts", file)).splitlines()) == 3
