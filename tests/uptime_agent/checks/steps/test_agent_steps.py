"""Checks of several steps: what is handed on, what always runs, what each may take, and what is told of it."""

import json
from contextlib import suppress
from types import SimpleNamespace

import anyio
import pytest
from hypothesis import given, strategies as st

from kit import PATIENCE, needs_re2
from scheduler import Subtask
from uptime_agent.checks import Resolver, Status, prepared, reach
from uptime_agent.config.config import parse_config
from uptime_agent.text import Redactor
from uptime_agent.toml import ConfigError

TOKEN = 's3cr3t/../ü "x"'


def read(steps, extra="", **places):
    """Read a check of steps in a file: the target."""
    for name, value in places.items():
        steps = steps.replace(f"<{name}>", str(value))
    return parse_config(f"[[check]]\nname = 'shop'\n{extra}\n{steps}", "uptime.toml", {}).targets[0]


@pytest.fixture
def run(target_check):
    """Run a check of steps to its end: the result, and the limits that its subtasks took in order."""

    async def to_end(target, **changes):
        hosts = dict.fromkeys(("a.test", "b.test"), ("127.0.0.1",))
        options = {
            "hosts": hosts,
            "timeout": target.timeout,
            "redactor": Redactor(target.check.secrets),
            "needs_at": target.needs_at,
            "degraded_above": target.degraded_above,
        }
        found, needs = await prepared(target_check(target.check, **options | changes)).run(), []
        while isinstance(found, list):
            (subtask,) = found
            assert isinstance(subtask, Subtask)
            needs += [sorted(dict(subtask.needs))]
            found = await subtask.func(*subtask.args)
        return SimpleNamespace(result=found, needs=needs)

    return to_end


@pytest.fixture
async def shop(serve):
    """Serve a shop: each path answers as a test says, and requests are kept, with their bodies."""
    pages, requests = {}, []

    async def handler(server, stream):
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(fields.get("content-length", "0")):
            body += await stream.receive()
        path = head.split()[1].decode()
        requests.append(SimpleNamespace(path=path, fields=head.decode(), body=body.decode()))
        status, content, more = pages.get(path.partition("?")[0], (200, "ok", ""))
        if status is None:
            await stream.receive()
        await stream.send(
            f"HTTP/1.1 {status} X\r\n{more}Content-Length: {len(content.encode())}\r\n\r\n{content}".encode()
        )

    server = await serve(handler)
    return SimpleNamespace(port=server.port, pages=pages, requests=requests, paths=lambda: [r.path for r in requests])


LOGIN = """
[[check.step]]
name = "login"
url = "http://a.test:<port>/login"
method = "POST"
body = '{"user": "me", "password": "hunter22"}'
take.token = { json = "$.token" }
take.id = { header = "X-Id" }
take.n = { regex = 'n=(\\d+)' }
take.s = { header = "Set-Cookie", regex = "s=([a-z]+)" }

[[check.step]]
name = "order"
url = "http://a.test:<port>/orders/{id}?t={token}"
method = "POST"
headers = { X-Session = "{s}", Content-Type = "application/json" }
body = '{"token": "{token}", "n": {n}, "other": "{unknown}"}'

[[check.step]]
name = "logout"
url = "http://b.test:<port>/logout?t={token}"
always = true
"""


@pytest.fixture
def open_shop(shop):
    """Let the login of the shop hand out what the steps take."""
    more = "X-Id: 7 7\r\nSet-Cookie: s=abc; Secure\r\n"
    shop.pages["/login"] = (200, json.dumps({"token": TOKEN, "note": "n=42"}), more)
    return shop


@needs_re2
async def test_texts_are_handed_on_and_escaped_for_where_they_go(open_shop, run):
    """In a path, in a query, in a header, in JSON; what nobody knows stays as it is in a body."""
    ended = await run(read(LOGIN, port=open_shop.port))
    assert (ended.result.status, ended.result.error) == (Status.UP, None)
    _, order, logout = open_shop.requests
    assert order.path == "/orders/7%207?t=s3cr3t%2F..%2F%C3%BC%20%22x%22"
    assert "X-Session: abc" in order.fields
    assert json.loads(order.body) == {"token": TOKEN, "n": 42, "other": "{unknown}"}
    assert logout.path.startswith("/logout?t=s3cr3t%2F")
    assert ended.needs == [["host:a.test", "steps"], ["host:b.test", "steps"]]
    assert {"login connect", "order first_byte", "logout dns"} <= ended.result.phases.keys()


@needs_re2
async def test_what_is_handed_on_is_shown_to_nobody(open_shop, run):
    """Neither in a result nor in an error of a later step in which a server repeats it."""
    open_shop.pages["/orders/7%207"] = (500, "", "")
    target = read(
        LOGIN.replace("headers = { X", 'expect_headers = { X-Echo = "no" }\nexpect_status = 500\nheaders = { X'),
        port=open_shop.port,
    )
    open_shop.pages["/orders/7%207"] = (500, "", "X-Echo: token s3cr3t/../ and abc, of hunter22\r\n")
    open_shop.pages["/login"] = (
        200,
        json.dumps({"token": "s3cr3t/../", "note": "n=42"}),
        "X-Id: 7 7\r\nSet-Cookie: s=abc; Secure\r\n",
    )
    ended = await run(target)
    assert ended.result.error == 'step order: its header x-echo is "token *** and ***, of ***", expected "no"'
    for text in ("s3cr3t", "hunter22"):
        assert text not in repr(ended.result)
        assert text not in repr(target)


@pytest.mark.parametrize(
    ("broken", "error", "paths"),
    [
        ("/login", "step login: status 500, expected 200-399", ["/login"]),
        ("/orders/7%207", "step order: status 500, expected 200-399", ["/login", "/orders/7%207", "/logout"]),
        ("/logout", "step logout: status 500, expected 200-399", ["/login", "/orders/7%207", "/logout"]),
    ],
)
@needs_re2
async def test_the_step_that_failed_is_named_and_what_always_runs_does(open_shop, run, broken, error, paths):
    """A clean-up that has nothing to clean up, for want of what it needs, is left out."""
    open_shop.pages[broken] = (500, "", "")
    ended = await run(read(LOGIN, port=open_shop.port))
    assert (ended.result.status, ended.result.error) == (Status.DOWN, error)
    assert [path.partition("?")[0] for path in open_shop.paths()] == paths
    assert ended.result.detail["step"] == error.split()[1].rstrip(":")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("<html>", "there is no {token} to hand on: its body is no JSON, from character 1 on"),
        ("{}", "there is no {token} to hand on: there is no $.token in its JSON"),
        ('{"token": [1]}', "there is no {token} to hand on: $.token is a list"),
        ('{"token": null}', "there is no {token} to hand on: $.token is null"),
        (json.dumps({"token": "x" * 9_000}), "{token} is too long to hand on: 9,000 characters, more than 8,000"),
        ('{"token": "x"}', "there is no {id} to hand on: it has no header X-Id"),
    ],
)
@needs_re2
async def test_a_text_that_is_not_there_fails_its_step(shop, run, answer, error):
    """In words that say what was looked for."""
    shop.pages["/login"] = (200, answer, "")
    ended = await run(read(LOGIN, port=shop.port))
    assert (ended.result.status, ended.result.error) == (Status.DOWN, f"step login: {error}")


@pytest.mark.parametrize(
    ("token", "error"),
    [
        ("x\r\nEvil: 1", "step order: {token} cannot stand in a header: it has more than printable ASCII"),
        ("ü", "step order: {token} cannot stand in a header: it has more than printable ASCII"),
        ("..", "step order: {token} is .., which would lead elsewhere in a URL"),
    ],
)
async def test_a_text_that_cannot_be_escaped_is_not_sent(shop, run, token, error):
    """It would be another header, or another place."""
    shop.pages["/login"] = (200, json.dumps({"token": token}), "")
    place = "headers = { X = '{token}' }" if token != ".." else ""
    target = read(
        f"""
        [[check.step]]
        url = "http://a.test:<port>/login"
        take = {{ token = {{ json = "$.token" }} }}
        [[check.step]]
        name = "order"
        url = "http://a.test:<port>/{"{token}" if token == ".." else ""}"
        {place}
        """,
        port=shop.port,
    )
    ended = await run(target)
    assert (ended.result.error, shop.paths()) == (error, ["/login"])


@pytest.mark.parametrize("text", ["{x.__class__}", "{{7*7}}", "a ${token}", "{0}", "{token!r}", "%(token)s", "{TOKEN}"])
async def test_there_are_no_expressions(shop, run, text):
    """Only the name of a known text in braces is replaced (S15)."""
    shop.pages["/login"] = (200, '{"token": "abc"}', "")
    steps = """
        [[check.step]]
        url = "http://a.test:<port>/login"
        take = { token = { json = "$.token" } }
        [[check.step]]
        url = "http://a.test:<port>/next"
        method = "POST"
        body = '<text>'
    """
    ended = await run(read(steps, port=shop.port, text=text))
    assert ended.result.status is Status.UP
    assert shop.requests[1].body == text.replace("{token}", "abc")


@needs_re2
async def test_a_form_is_escaped_as_a_form(shop, run):
    """By its content type."""
    shop.pages["/login"] = (200, "a&b=c d", "")
    steps = """
        [[check.step]]
        url = "http://a.test:<port>/login"
        take = { t = { regex = ".+" } }
        [[check.step]]
        url = "http://a.test:<port>/next"
        method = "POST"
        headers = { Content-Type = "application/x-www-form-urlencoded" }
        body = 't={t}&u=1'
    """
    await run(read(steps, port=shop.port))
    assert shop.requests[1].body == "t=a%26b%3Dc+d&u=1"


SILENT = """
[[check.step]]
name = "first"
url = "http://a.test:<port>/silent"
<timeout>
[[check.step]]
name = "never"
url = "http://a.test:<port>/never"
[[check.step]]
name = "end"
url = "http://a.test:<port>/end"
always = true
"""


@pytest.mark.parametrize(("own", "extra"), [("timeout = '100ms'", ""), ("", "timeout = '100ms'")])
async def test_a_step_that_takes_too_long_costs_its_time_and_no_clean_up(shop, run, own, extra):
    """Whether it is its own time that is over or that of all."""
    shop.pages["/silent"] = (None, "", "")
    target = read(SILENT, extra, port=shop.port, timeout=own)
    with anyio.fail_after(PATIENCE):
        ended = await run(target)
    assert ended.result.error == f"step first: no answer from 127.0.0.1:{shop.port} within 0.1 s (first byte)"
    assert shop.paths() == ["/silent", "/end"]


@needs_re2
async def test_a_redirect_of_a_step_goes_on_to_the_next(shop, run):
    """It takes the units of the host where it leads, and the next step those of its own."""
    shop.pages["/first"] = (302, "", f"Location: http://b.test:{shop.port}/second\r\n")
    shop.pages["/second"] = (200, "t=abc", "")
    steps = """
        [[check.step]]
        url = "http://a.test:<port>/first"
        redirects = 1
        redirect_targets = "any"
        take = { t = { regex = "t=(.*)" } }
        [[check.step]]
        url = "http://a.test:<port>/third/{t}"
    """
    ended = await run(read(steps, port=shop.port))
    assert (ended.result.status, shop.paths()) == (Status.UP, ["/first", "/second", "/third/abc"])
    assert [needs[0] for needs in ended.needs] == ["host:a.test", "host:b.test", "host:a.test"]


@needs_re2
async def test_every_step_is_within_reach(shop, run, target_check):
    """Whatever is handed on, and wherever a step leads."""
    target = read(LOGIN, port=shop.port)
    shop.pages["/login"] = (200, json.dumps({"token": "t", "note": "n=1"}), "X-Id: 7\r\nSet-Cookie: s=a\r\n")
    hosts = dict.fromkeys(("a.test", "b.test"), ("127.0.0.1",))
    ended = await run(target, resolver=Resolver(hosts, None, reach(["a.test"])))
    assert ended.result.error == (
        'step logout: b.test (127.0.0.1) is not asked: "targets" in the configuration does not allow it'
    )


async def test_all_steps_are_tried_again(shop, run):
    """From the first, as often as the target may be asked."""
    shop.pages["/b"] = (500, "", "")
    steps = "[[check.step]]\nurl = 'http://a.test:<port>/a'\n[[check.step]]\nurl = 'http://a.test:<port>/b'"
    ended = await run(read(steps, port=shop.port), attempts=lambda: 2)
    assert (ended.result.attempt, shop.paths()) == (2, ["/a", "/b", "/a", "/b"])


async def test_other_kinds_may_be_steps(shop, run):
    """They hand nothing on, but what follows waits for them."""
    steps = "[[check.step]]\nurl = 'tcp://a.test:<port>'\n[[check.step]]\nurl = 'http://a.test:<port>/a'"
    ended = await run(read(steps, port=shop.port))
    assert (ended.result.status, shop.paths()) == (Status.UP, ["/a"])


async def test_slow_steps_are_degraded_together(shop, run):
    """The threshold is for all of them."""
    steps = "[[check.step]]\nurl = 'http://a.test:<port>/a'\n"
    ended = await run(read(steps, "degraded_above = 1e-6", port=shop.port))
    assert ended.result.status is Status.DEGRADED
    assert ended.result.error.startswith("took ")


@needs_re2
async def test_the_agent_runs_steps_and_shows_which_one_failed(open_shop, ran, tmp_path):
    """With limits, subtasks and history around them; and nothing of what was handed on, in any output."""
    open_shop.pages["/orders/7%207"] = (500, "", "")
    file = tmp_path / "uptime.toml"
    steps = LOGIN.replace("<port>", str(open_shop.port))
    hosts = "[hosts]\n'a.test' = '127.0.0.1'\n'b.test' = '127.0.0.1'\n"
    file.write_text(f"{hosts}[limits]\nsteps = 1\n'host:*' = 1\n[[check]]\nname = 'shop'\n{steps}")
    for output in ("--plain", "--json"):
        code, out, err = await ran("run", str(file), "--once", output)
        assert code == 1
        assert "step order: status 500, expected 200-399" in out
        assert "s3cr3t" not in out + err
        assert "hunter22" not in out + err
    assert json.loads(next(line for line in out.splitlines() if '"check"' in line))["type"] == "steps"


VALUES = st.recursive(
    st.booleans()
    | st.integers(-5, 10**6)
    | st.text(max_size=20)
    | st.sampled_from(["$.a", "{t}", "http://h/{t}", "1s"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["json", "header", "regex", "t"]), inner)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["url", "name", "always", "timeout", "take", "headers", "body", "json", "regex", "method", "x"])


def written(value):
    """Write a value in TOML."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)} = {written(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(written, value)) + "]"
        case _:
            return json.dumps(value)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=4), min_size=1, max_size=3))
def test_whatever_a_step_says_is_read_or_refused(steps):
    """With problems that name their line, and never with anything else."""
    tables = [{"url": "http://h/"} | step for step in steps]
    lines = ["[[check]]\nname = 'x'"]
    for table in tables:
        lines += ["[[check.step]]", *(f"{key} = {written(value)}" for key, value in table.items())]
    with suppress(ConfigError):
        parse_config("\n".join(lines), "uptime.toml", {})


STEP = "[[check]]\nname = 'x'\n[[check.step]]\nurl = 'http://h/'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[check]]\nname = 'x'\nstep = 5", "step: expected tables that begin with [[check.step]], found the number 5"),
        ("[[check]]\nname = 'x'\nstep = []", "step: expected tables that begin with [[check.step]]"),
        ("[[check]]\nurl = 'http://h'\n[[check.step]]\nurl = 'http://h'", "url: each step has its own"),
        ("[[check]]\nname = 'x'\n[[check.step]]\nname = 'y'", "[[check]] 'x' step 'y': the key 'url' is missing"),
        (STEP + "methd = 'GET'", "unknown key 'methd' in [[check]] 'x' step 1, did you mean 'method'?"),
        (STEP + "always = 1", "always: expected true or false"),
        (STEP + "timeout = 0", "timeout: expected a duration"),
        (STEP + "take = 5", "take: expected a table such as"),
        (STEP + "take = {}", "take: expected a table such as"),
        (STEP + "take = { A = { json = '$' } }", "expected a name of small letters, digits and _, such as token"),
        (STEP + "take = { a = { json = '$', regex = 'x' } }", "expected for a { json = PATH }, { header = NAME }"),
        (STEP + "take = { a = { json = '$.a == 1' } }", "expected a path without a comparison, such as $.a"),
        pytest.param(
            STEP + "take = { a = { regex = '(' } }", "expected a regular expression that RE2 knows", marks=needs_re2
        ),
        (STEP + "headers = { X = '{t}' }", "{t} is not handed on by a step before it; nothing is handed on"),
        (
            STEP + "take = { a = { json = '$' } }\n[[check.step]]\nurl = 'http://h/{b}'",
            "[[check]] 'x' step 2: {b} is not handed on by a step before it; there is {a}",
        ),
        (STEP + "always = true\n[[check.step]]\nurl = 'http://h'", "steps that always run stand at the end"),
        (STEP + "name = 'a'\n[[check.step]]\nname = 'a'\nurl = 'http://h'", "name: there is a step 'a' before it"),
        ("[[check]]\nname = 'x'\n[[check.step]]\nurl = 'http://{h}/'", "a URL in which {name} stands in path or query"),
        ("[[check]]\nname='x'\n[[check.step]]\nurl='tcp://h:1'\ntake = { a = { json = '$' } }", "take: is for http"),
        ("[[check]]\nname='x'\n[[check.step]]\nurl='domain://example.org'", "a domain check cannot be a step"),
        ("[[check]]\nname='x'\nmode = 'all'\n[[check.step]]\nurl='http://h'", "mode: a steps check has no addresses"),
        ("[[check]]\nname='x'\nmethod = 'GET'\n[[check.step]]\nurl='http://h'", "method: is for http checks"),
        ("targets = 'public'\n" + STEP.replace("/h/", "/10.0.0.1/"), "10.0.0.1 is not asked"),
        ("[[check]]\nname='x'\n" + "[[check.step]]\nurl='http://h'\n" * 21, "at most 20 steps, not 21"),
    ],
)
def test_a_mistake_in_a_step_is_told_with_its_line(text, message):
    """What was expected, in which step."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "uptime.toml", {})
    assert message in str(caught.value)
