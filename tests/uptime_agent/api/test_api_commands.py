"""Commands that talk to a running agent, or to its store where none answers."""

import json
import sys

import pytest
from anyio import run_process

from asgi_kit import check
from kit import until


async def test_jobs_are_listed_paused_run_and_resumed(running, type_):
    """By whoever may reach the socket."""
    async with running(check("site") + check("other")) as agent:
        code, said = await type_("jobs", "list", agent.file)
        assert (code, [line.split()[0] for line in said.splitlines()]) == (0, ["other", "site"])
        assert await type_("jobs", "pause", "site", agent.file, "--for", "2h", "--reason", "disks") == (
            0,
            "paused: site\n",
        )
        code, said = await type_("jobs", "show", "site", agent.file)
        assert "state: paused\n" in said
        assert "reason: disks\n" in said
        assert (await type_("jobs", "skip", "other", agent.file))[0] == 0
        assert (await type_("jobs", "resume", "site", agent.file))[0] == 0
        assert (await type_("jobs", "run", "site", agent.file))[0] == 0
        await until(lambda: agent.scheduler.get("site").statistics().runs)
        await agent.scheduler.flush()
        code, said = await type_("jobs", "history", "site", agent.file, "--json")
        assert (code, json.loads(said.splitlines()[-1])["job_id"]) == (0, "site")
        code, said = await type_("limits", agent.file, "--json")
        assert (code, json.loads(said) != {}) == (0, True)


async def test_a_job_is_added_altered_and_removed(running, type_):
    """With the words of the library where something is wrong."""
    async with running(check("site")) as agent:
        add = ("jobs", "add", "mine", agent.file, "--task", "check", "--arg", '"site"')
        code, said = await type_(*add, "--schedule", "every day")
        assert code == 2
        assert "schedule" in said
        assert await type_(*add, "--schedule", "@every 1h", "--tag", "night") == (0, "added: mine\n")
        assert (await type_(*add, "--schedule", "@every 1h"))[0] == 1
        assert await type_("jobs", "alter", "mine", agent.file, "--set", "timeout=30") == (0, "changed: mine\n")
        assert await type_("jobs", "alter", "mine", agent.file, "--set", "timeout=30") == (0, "it was so: mine\n")
        assert agent.scheduler.get("mine").spec.policy.timeout == 30
        code, said = await type_("jobs", "list", agent.file, "--tag", "night", "--json")
        assert [json.loads(line)["id"] for line in said.splitlines()] == ["mine"]
        assert await type_("jobs", "remove", "mine", agent.file) == (0, "removed: mine\n")
        code, said = await type_("jobs", "show", "mine", agent.file)
        assert (code, "mine" in said) == (1, True)


async def test_more_jobs_than_a_page_has_are_listed(running, type_):
    """One page after another, as many as are asked for."""
    async with running("".join(check(f"site-{number:04}") for number in range(1_100))) as agent:
        code, said = await type_("jobs", "list", agent.file, "--limit", "5000")
        assert (code, len(said.splitlines())) == (0, 1_100)
        code, said = await type_("jobs", "list", agent.file, "--limit", "7")
        assert (code, len(said.splitlines())) == (0, 7)


async def test_an_agent_elsewhere_is_asked_with_a_token(running, type_):
    """At its address; the token comes from the environment, and is in no list of processes."""
    async with running(check("site")) as agent:
        at = ("--at", f"http://127.0.0.1:{agent.config.api.listen[1]}")
        code, said = await type_("jobs", "list", *at)
        assert (code, "token" in said) == (1, True)
        code, secret = await type_("token", "add", "ann", agent.file, "--scope", "read")
        assert code == 0
        code, said = await type_("jobs", "list", *at, TIMERQUEUE_TOKEN=secret)
        assert (code, said.split()[0]) == (0, "site")
        code, said = await type_("jobs", "pause", "site", *at, TIMERQUEUE_TOKEN=secret.strip())
        assert (code, "scope" in said) == (1, True)
        assert await type_("token", "list", agent.file) == (0, "ann  read\n")
        assert await type_("token", "revoke", "ann", agent.file) == (0, "revoked: ann\n")
        assert (await type_("jobs", "list", *at, TIMERQUEUE_TOKEN=secret.strip()))[0] == 1


async def test_a_name_that_is_no_host_is_told_as_such(type_):
    """Name servers and TLS have numbers of their own: "unknown error -2" says nothing."""
    assert (await type_("jobs", "list", "--at", "http://no host.invalid:1"))[0] == 2
    code, said = await type_("jobs", "list", "--at", "http://none.invalid:1")
    assert (code, "unknown error" in said.lower()) == (1, False)


async def test_without_an_agent_the_store_is_read(running, type_):
    """It says so. What changes something ends with the reason."""
    async with running(check("site", "tags = ['night']") + check("other")) as agent:
        assert (await type_("jobs", "pause", "site", agent.file, "--reason", "disks"))[0] == 0
        await type_("jobs", "run", "other", agent.file)
        await until(lambda: agent.scheduler.get("other").statistics().runs)
    code, said = await type_("jobs", "list", agent.file, "--tag", "night")
    assert (code, said.splitlines()[1].split()[:2]) == (0, ["site", "paused"])
    assert "this comes from the store" in said.splitlines()[0]
    code, said = await type_("jobs", "show", "site", agent.file)
    assert (code, "reason: disks" in said) == (0, True)
    code, said = await type_("jobs", "history", "other", agent.file)
    assert (code, len(said.splitlines()) >= 2) == (0, True)
    code, said = await type_("jobs", "show", "none", agent.file)
    assert (code, "there is no job 'none'" in said) == (1, True)
    code, said = await type_("jobs", "pause", "site", agent.file)
    assert (code, "no agent answers at" in said) == (1, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("jobs", "list"), "either its FILE, or --at URL"),
        (("jobs", "list", "FILE", "--at", "http://h:1"), "either its FILE, or --at URL"),
        (("jobs", "list", "--at", "ftp://h"), "expected http://HOST:PORT"),
        (("jobs", "pause", "a", "FILE", "--until", "soon"), "expected an instant"),
        (("jobs", "pause", "a", "FILE", "--until", "2030-01-01T00:00:00Z", "--for", "1h"), "not both"),
        (("jobs", "add", "a", "FILE", "--task", "check"), "--schedule"),
        (("jobs", "add", "a", "FILE", "--task", "check", "--set", "timeout"), "KEY=JSON"),
        (("jobs", "alter", "a", "FILE"), "say what changes"),
        (("jobs", "alter", "a", "FILE", "--set", "timeout=x"), "expected JSON"),
        (("jobs", "list", "PLAIN"), "has no [api]"),
        (("token", "list", "PLAIN"), "has no [api]"),
    ],
)
async def test_a_command_that_is_typed_wrongly_says_what_is_right(tmp_path, type_, words, says):
    """With exit code 2; nothing was asked."""
    files = {"FILE": tmp_path / "a.toml", "PLAIN": tmp_path / "b.toml"}
    files["FILE"].write_text("[api]\n" + check("a"))
    files["PLAIN"].write_text(check("a"))
    code, said = await type_(*(files.get(word, word) for word in words))
    assert code == 2
    assert says in " ".join(said.split())


@pytest.mark.parametrize("head", ["", "[api]\n"])
async def test_what_an_agent_without_api_does_not_need_is_not_imported(tmp_path, head):
    """Neither starlette nor the server for it: off costs nothing."""
    file = tmp_path / "uptime.toml"
    file.write_text(f'store = "memory"\n{head}{check("site")}')
    program = (
        "import sys\nfrom uptime_agent.cli import cli\n"
        "try:\n    cli(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "names = ('starlette', 'prometheus_client', 'uptime_agent.api', 'uptime_agent.exposition')\n"
        "found = [each for each in names if each in sys.modules]\n"
        "print(*found, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, "run", str(file), "--for", "10ms", "--plain"]
    done = await run_process(command, check=False)
    found = done.stderr.decode().split()
    assert found == (["starlette", "uptime_agent.api"] if head else [])


async def test_a_missing_starlette_is_named_with_its_extra(tmp_path, monkeypatch, type_):
    """Before anything starts; without [api] nobody misses it."""
    monkeypatch.setattr("uptime_agent.config.api.find_spec", lambda name: None)
    file = tmp_path / "uptime.toml"
    file.write_text(f"[api]\n{check('site')}")
    code, said = await type_("check", file)
    assert (code, "pip install 'timerqueue[agent,web]'" in said) == (2, True)
    file.write_text(check("site"))
    assert (await type_("check", file))[0] == 0


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ('[api]\nlisten = "192.0.2.1:80"', None),
        ('[api]\nlisten = "localhost"', "listen"),
        ('[api]\nlisten = "127.0.0.1:99999"', "listen"),
        ("[api]\nport = 1", "unknown key 'port'"),
        ('[api]\nhosts = "a"', "hosts"),
        ('[api]\ntrusted_proxies = ["10.0.0.0/24"]', "user_header is missing"),
        ('[api]\nuser_header = "X-User"\nusers = { a = "read" }', "trusted_proxies is missing"),
        ('[api]\ntrusted_proxies = ["10.0.0.1/24"]\nuser_header = "X"\nusers = { a = "read" }', "trusted_proxies"),
        ('[api]\ntrusted_proxies = ["10.0.0.1"]\nuser_header = "Authorization"\nusers = { a = "read" }', "user_header"),
        ('[api]\ntrusted_proxies = ["10.0.0.1"]\nuser_header = "X"\nusers = { a = "root" }', "users"),
        ('[api]\ntokens = ""', "tokens"),
    ],
)
async def test_a_mistake_in_the_table_is_told(tmp_path, type_, head, says):
    """With its line; and an address beyond this machine is warned of."""
    file = tmp_path / "uptime.toml"
    file.write_text(f"{head}\n{check('site')}")
    code, said = await type_("check", file)
    assert (code, (says or "listens beyond this machine without TLS") in said) == (0 if says is None else 2, True)


async def test_an_address_beyond_this_machine_needs_a_token(tmp_path, type_):
    """Else nobody could ask, and everybody could try."""
    file = tmp_path / "uptime.toml"
    file.write_text(f'[api]\nlisten = "0.0.0.0:1"\n{check("site")}')
    code, said = await type_("run", file)
    assert (code, "timerqueue token add" in said) == (2, True)
