"""What HTTP checks send and expect: methods, bodies, headers, texts, JSON and patterns, against real servers."""

import gzip
import json
import sys

import anyio
import pytest

from kit import PATIENCE, needs_re2
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.http import patterns
from uptime_agent.checks.http.body import MOST_SENT, request_body
from uptime_agent.checks.http.expectations import MOST_JSON, Wildcards, header_expectations, json_expectations
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.checks.http.patterns import MOST_SEARCHED, compiled, regex
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.text import Redactor
from uptime_agent.text.url import parse_url
from uptime_agent.toml.readers import Unfit


def check(port, **options):
    """Make an HTTP check of options as the configuration has them."""
    kind = BY_SCHEME["http"]
    read = {key: kind.options[key](value) for key, value in options.items()}
    return kind.make(url=parse_url(f"http://127.0.0.1:{port}/", SCHEMES), **read)


async def error_of(server, attempt, **options):
    """Make an attempt: its error, or None if the target is up."""
    finding = await check(server.port, **options).attempt(attempt())
    assert (finding.status is Status.UP) is (finding.error is None)
    return finding.error


def receiving(requests):
    """Make a handler that keeps whole requests with their bodies."""

    async def handler(server, stream):
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
        head, _, body = received.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(body) < int(fields.get("Content-Length", fields.get("content-length", "0"))):
            body += await stream.receive()
        requests.append((head.split()[0].decode(), {name.lower(): value for name, value in fields.items()}, body))
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    return handler


@pytest.mark.parametrize(
    ("options", "method", "length", "body"),
    [
        ({}, "GET", None, b""),
        ({"method": "DELETE"}, "DELETE", None, b""),
        ({"method": "POST"}, "POST", "0", b""),
        ({"method": "PUT", "body": "größe=1"}, "PUT", "9", "größe=1".encode()),
        ({"method": "PROPFIND", "body": "x" * 300_000}, "PROPFIND", "300000", b"x" * 300_000),
        ({"method": "GET", "body": ""}, "GET", "0", b""),
    ],
)
async def test_any_method_may_have_a_body(serve, attempt, options, method, length, body):
    """The server gets all of it, with its length."""
    requests = []
    server = await serve(receiving(requests))
    assert await error_of(server, attempt, **options) is None
    ((sent, fields, got),) = requests
    assert (sent, fields.get("content-length"), got) == (method, length, body)


async def test_a_body_may_come_from_a_file_or_the_environment(serve, attempt, tmp_path, monkeypatch):
    """Bytes as they are; and it is a secret."""
    file = tmp_path / "body.bin"
    file.write_bytes(b"\x00\xffraw")
    monkeypatch.setenv("LOGIN", '{"user": "me", "password": "hunter22"}')
    requests = []
    server = await serve(receiving(requests))
    await error_of(server, attempt, method="POST", body={"file": str(file)})
    await error_of(server, attempt, method="POST", body={"env": "LOGIN"})
    assert [body for _, _, body in requests] == [b"\x00\xffraw", b'{"user": "me", "password": "hunter22"}']
    assert "hunter22" in check(1, body={"env": "LOGIN"}).secrets
    assert '{"user": "me", "password": "hunter22"}' in check(1, body={"env": "LOGIN"}).secrets


@pytest.mark.parametrize(
    ("body", "secret"),
    [
        ('{"a": {"api_key": ["hunter22"]}}', "hunter22"),
        ("user=me&password=hunter%2122", "hunter!22"),
        ('{"token": {"value": "hunter22"}}', "hunter22"),
    ],
)
def test_secrets_in_a_body_are_known(body, secret):
    """By their names, in JSON and in forms; and a repr shows none of it."""
    made = check(1, body=body)
    assert secret not in Redactor(made.secrets).clean(f"the server says: {secret}")
    assert secret not in repr(made)
    assert "user" not in made.secrets


def test_a_body_has_a_bound(tmp_path):
    """And what is no file, and may have no end, is not read at all."""
    with pytest.raises(Unfit, match="it is a device, and no file"):
        request_body({"file": "/dev/zero"})
    file = tmp_path / "body"
    file.write_bytes(b"x" * (MOST_SENT + 1))
    with pytest.raises(Unfit, match="a body of at most 1,024 KiB"):
        request_body({"file": str(file)})
    file.write_bytes(b"x" * MOST_SENT)
    assert len(request_body({"file": str(file)}).content) == MOST_SENT


async def test_a_redirect_leaves_method_and_body_behind(serve, answers, attempt, target_check):
    """What was meant for one place is not sent to another."""
    requests = []
    end = await serve(receiving(requests))
    start = await serve(answers.respond(307, headers=[f"Location: http://127.0.0.1:{end.port}/"]))
    made = check(start.port, method="DELETE", body="hunter22", redirects=1)
    result = await target_check(made).run()
    assert result.status is Status.UP
    ((method, fields, body),) = requests
    assert (method, body, "content-length" in fields) == ("GET", b"", False)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"contains": "ok"}, None),
        ({"not_contains": "error"}, None),
        ({"not_contains": "ok"}, '"ok" is in the body (36 bytes)'),
        ({"contains": "ok", "not_contains": "queue"}, '"queue" is in the body (36 bytes)'),
        ({"json": '$.status == "ok"'}, None),
        ({"json": ['$.status == "ok"', "$.queue.length < 10"]}, None),
        ({"json": ['$.status == "ok"', "$.queue.length > 10"]}, "$.queue.length is 5, expected > 10"),
        pytest.param({"regex": r'"status": ?"(ok|fine)"'}, None, marks=needs_re2),
        pytest.param({"regex": "(?i)STATUS"}, None, marks=needs_re2),
        pytest.param({"regex": "^x"}, 'nothing in the body (36 bytes) is like "^x"', marks=needs_re2),
        ({"expect_headers": {"Content-Type": "application/json*"}}, None),
        ({"expect_headers": {"CONTENT-TYPE": "*json*utf-8"}}, None),
        ({"expect_headers": {"X-Powered-By": False}}, None),
        ({"expect_headers": {"Content-Type": False}}, "it has the header content-type, expected none"),
        ({"expect_headers": {"Age": "*"}}, 'it has no header age, expected "*"'),
        (
            {"expect_headers": {"Content-Type": "text/html"}},
            'its header content-type is "application/json; charset=utf-8", expected "text/html"',
        ),
        ({"expect_status": 201, "contains": "nothing"}, "status 200, expected 201"),
    ],
)
async def test_all_that_is_expected_has_to_hold(serve, answers, attempt, options, error):
    """And the first thing that does not is told."""
    body = b'{"status":"ok","queue":{"length":5}}'
    server = await serve(answers.respond(body=body, headers=["Content-Type: application/json; charset=utf-8"]))
    assert await error_of(server, attempt, **options) == error


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<html>", "its body is no JSON, from character 1 on (6 bytes)"),
        (b"[" * 500_000, "its body is no JSON that can be read: it is nested too deep (500,000 bytes)"),
        (b"9" * 5_000, "its body is no JSON that can be read: it has a number that makes no sense (5,000 bytes)"),
        (b'"\xff"', "its body is no JSON: it is not UTF-8 (3 bytes)"),
    ],
)
async def test_what_is_no_json_is_down(serve, answers, attempt, body, error):
    """It is the server that says so."""
    server = await serve(answers.respond(body=body))
    assert await error_of(server, attempt, json="$") == error


async def test_json_beyond_what_is_read_is_down(serve, answers, attempt):
    """Reading it would keep all other checks waiting; a bomb is as long as what comes out of it."""
    bomb = gzip.compress(b"[" + b"0," * MOST_JSON + b"0]")
    server = await serve(answers.respond(body=bomb, headers=["Content-Encoding: gzip"]))
    error = await error_of(server, attempt, json="$", max_body=4 * MOST_JSON)
    assert error == "its body is longer than the 1,048,576 bytes that are read as JSON"
    assert (
        await error_of(server, attempt, json="$")
        == "its body is no JSON, from character 1,048,577 on (1,048,576 bytes)"
    )


@pytest.mark.parametrize(
    ("text", "value", "fits"),
    [
        ("", "", True),
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "", True),
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("a*c", "abc", True),
        ("a*a", "a", False),
        ("*b*", "abc", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b-c", True),
        ("a*bb*c", "a-b-c", False),
        ("*ab*ab*", "ab", False),
        ("A", "a", False),
        ("a?", "ab", False),
    ],
)
def test_a_star_stands_for_any_text(text, value, fits):
    """Nothing else stands for anything but itself."""
    assert Wildcards(text).fits(value) is fits


@pytest.mark.parametrize("value", [5, {"A": True}, {"A": "x\ny"}, {"": "x"}, {"A": {"env": "X"}}, ["A"]])
def test_other_expectations_of_headers_are_refused(value):
    """Each with what was expected."""
    with pytest.raises(Unfit):
        header_expectations(value)


@pytest.mark.parametrize("value", [5, [], {}, "", [["$"]], ["$", 5]])
def test_other_expectations_of_json_are_refused(value):
    """Each with what was expected."""
    with pytest.raises(Unfit):
        json_expectations(value)


@needs_re2
async def test_a_pattern_that_explodes_elsewhere_does_not_here(serve, answers, attempt):
    """(a+)+$ on 64 KiB takes others longer than the universe has been there (GHSA-3rw8-4xrq-3f7p)."""
    server = await serve(answers.respond(body=b"a" * 2 * MOST_SEARCHED + b"b"))
    with anyio.fail_after(PATIENCE):
        error = await error_of(server, attempt, regex="(a+)+c$")
    assert error == 'nothing in the first 65,536 of 131,073 bytes of the body is like "(a+)+c$"'


@needs_re2
async def test_only_so_much_of_a_body_is_searched(serve, answers, attempt):
    """What stands behind it is not found, and the error says how far was looked."""
    server = await serve(answers.respond(body=b"a" * MOST_SEARCHED + b"needle"))
    assert "the first 65,536 of 65,542 bytes" in await error_of(server, attempt, regex="needle")


@needs_re2
async def test_a_large_search_has_a_thread_and_is_left_behind(monkeypatch):
    """Others go on meanwhile; a check whose time is over does not wait for it."""
    used = []

    async def run_sync(call, *args, abandon_on_cancel):
        used.append(abandon_on_cancel)
        return call(*args)

    monkeypatch.setattr(patterns.anyio.to_thread, "run_sync", run_sync)
    large, small = compiled("(a|b)*a(a|b){100}c"), compiled("b+")
    assert await large.search(b"ab" * 20_000) is None
    assert used == [True]
    assert await small.search(b"ab" * 20_000) == ("b",)
    assert used == [True]


@needs_re2
async def test_groups_are_texts():
    """Also where bytes make no sense as text, and "" for a group without a part."""
    assert await compiled('"id": ?"([^"]*)"(x)?').search(b'{"id": "\xff7"}') == ('"id": "\ufffd7"', "\ufffd7", "")
    assert compiled("(a)(?P<b>b)").groups == 2


def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    """It is an extra."""
    compiled.cache_clear()
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(Unfit, match=r'expected the library google-re2 .*: pip install "timerqueue\[regex\]"'):
        regex("a")


@needs_re2
async def test_a_body_in_another_encoding_is_read_as_nothing(serve, answers, attempt):
    """Neither JSON nor a pattern, nor the lack of a text, can be told."""
    server = await serve(answers.respond(headers=["Content-Encoding: br"], body=json.dumps({}).encode()))
    for options in ({"json": "$"}, {"regex": "x"}, {"not_contains": "x"}):
        finding = await check(server.port, **options).attempt(attempt())
        assert finding.status is Status.UNKNOWN
