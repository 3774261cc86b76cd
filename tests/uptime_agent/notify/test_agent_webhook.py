"""The channel webhook: what it posts, what it makes of the answer, and what nobody learns from it."""

import json

import anyio
import pytest
from attrs import evolve
from hypothesis import given, strategies as st

import notify_kit
from notify_kit import MESSAGE
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.notify import ChannelDeps, Message, MessageKind, Notification, Undelivered
from uptime_agent.notify.channels.template import template
from uptime_agent.toml import Secret, Unfit

CANARY = "c4n4ry-s3cr3t"


def channel(kind="webhook", **options):
    return notify_kit.channel(kind, **options)


def means(hosts=None):
    async def no_lookup(host):
        raise OSError(f"nobody should look up {host}")

    return ChannelDeps(Resolver(hosts or {}, no_lookup), SystemClock())


async def send(made, message=MESSAGE, **hosts):
    return await made.send(Notification((message,) if isinstance(message, Message) else message), means(**hosts))


async def test_a_message_is_posted_as_json_with_its_key(hook):
    """With all that a receiver may want to know, in words and in values."""
    await send(channel(url=f"http://127.0.0.1:{hook.port}/alarm?team=ops"))
    ((line, fields, body),) = hook.got
    assert line == "POST /alarm?team=ops HTTP/1.1"
    assert fields["idempotency-key"] == body["key"] == "shop-1:ops:trigger"
    assert fields["content-type"] == "application/json"
    assert body["text"] == "shop is down: connection refused"
    assert (body["kind"], body["target"], body["status"], body["incident"]) == ("trigger", "shop", "down", "shop-1")
    assert body["began"] == "2001-09-09T01:46:40.000Z"


async def test_a_digest_has_the_key_of_each_message(hook):
    """So that a receiver can tell what it has had already."""
    messages = tuple(evolve(MESSAGE, incident=f"shop-{number}") for number in range(3))
    await send(channel(url=f"http://127.0.0.1:{hook.port}/"), messages)
    ((_, fields, body),) = hook.got
    assert body["kind"] == "digest"
    assert [each["key"] for each in body["messages"]] == [f"shop-{number}:ops:trigger" for number in range(3)]
    assert fields["idempotency-key"].endswith(":ops:digest")


async def test_a_digest_has_a_status_of_its_own(hook):
    """That of its messages, or "mixed": it bore the status and the target of its first message."""
    made = channel(url=f"http://127.0.0.1:{hook.port}/", template='{"text": "[{status}] {target} {error} {kind}"}')
    plain = channel(url=f"http://127.0.0.1:{hook.port}/")
    end = evolve(MESSAGE, kind=MessageKind.RESOLVED, ended=2e9, incident="shop-2")
    other = evolve(MESSAGE, target="blog", incident="blog-1")
    for messages in ((MESSAGE, other), (MESSAGE, end), (other, evolve(end, error="reset"))):
        await send(made, messages)
        await send(plain, messages)
    assert [body["text"] for _, _, body in hook.got[::2]] == [
        "[down] 2 targets connection refused digest",
        "[mixed] shop connection refused digest",
        "[mixed] 2 targets  digest",
    ]
    assert [body["status"] for _, _, body in hook.got[1::2]] == ["down", "mixed", "mixed"]


def test_a_digest_is_json_in_any_template_that_its_messages_are():
    """A number stays one though its messages have several."""
    made = template('{"n": {members}, "of": {count}, "again": {reminder}}')
    messages = tuple(evolve(MESSAGE, members=each, target=f"t{each}") for each in (2, 3))
    assert json.loads(made.render(Notification(messages))) == {"n": 5, "of": 2, "again": 0}


def test_a_digest_has_an_incident_of_its_own():
    """A receiver that tells alarms apart by it took all digests for one: it was empty."""
    made = template('{"dedup_key": "{incident}"}')
    one, other = (evolve(MESSAGE, incident=f"shop-{number}") for number in (1, 2))
    keys = [
        json.loads(made.render(Notification(messages)))["dedup_key"]
        for messages in (
            (one, other),
            (one, other),
            (one, evolve(other, number=1)),
            (one, evolve(one, number=1)),
            (one,),
        )
    ]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0].startswith("digest-")
    assert keys[3:] == ["shop-1", "shop-1"]  # of one incident it is that


async def test_headers_come_from_the_file_the_environment_and_files(hook, tmp_path):
    """Ours give way to them, apart from those that belong to the request itself."""
    (tmp_path / "token").write_text(f"Bearer {CANARY}\n")
    made = channel(
        url=f"http://127.0.0.1:{hook.port}/",
        headers={"Authorization": {"file": "token"}, "X-Team": {"env": "TEAM"}, "User-Agent": "me"},
        folder=tmp_path,
        environment={"TEAM": "ops"},
    )
    await send(made)
    ((_, fields, _),) = hook.got
    assert fields["authorization"].endswith(CANARY)
    assert (fields["x-team"], fields["user-agent"]) == ("ops", "me")
    assert {f"Bearer {CANARY}", CANARY, "ops"} <= made.secrets


@pytest.mark.parametrize("status", [301, 302, 400, 401, 404, 429, 500, 503])
async def test_anything_but_success_is_not_delivered(hook, status):
    """A redirect is not followed: nobody but the configuration says where messages go."""
    hook.status, hook.headers, hook.body = status, f"Location: http://127.0.0.1:{hook.port}/other\r\n", b"no \x1b[31m"
    with pytest.raises(Undelivered, match=rf"answered with status {status}: no \\x1b\[31m"):
        await send(channel(url=f"http://127.0.0.1:{hook.port}/"))
    assert len(hook.got) == 1


async def test_a_receiver_may_ask_to_be_left_alone(hook):
    """For a while that makes sense."""
    for said, rest in [("30", 30.0), ("999999", 3600.0), ("-1", None), ("soon", None), ("9" * 5000, 3600.0)]:
        hook.status, hook.headers = 429, f"Retry-After: {said}\r\n"
        with pytest.raises(Undelivered) as caught:
            await send(channel(url=f"http://127.0.0.1:{hook.port}/"))
        assert caught.value.rest == rest


async def test_the_first_address_that_answers_gets_it(hook):
    """A name may have others that do not."""
    url = f"http://hook.test:{hook.port}/"
    await send(channel(url=url), hosts={"hook.test": ("::1", "127.0.0.2", "127.0.0.1")})
    assert len(hook.got) == 1
    assert hook.got[0][1]["host"] == f"hook.test:{hook.port}"


async def test_a_receiver_that_refuses_or_floods_is_told_in_words(serve, answers, free_port):
    """As a check would tell it."""
    with pytest.raises(Undelivered, match=r"connection refused by 127\.0\.0\.1"):
        await send(channel(url=f"http://127.0.0.1:{free_port}/"))
    flood = await serve(answers.flooding)
    with pytest.raises(Undelivered, match="its answer is not HTTP"):
        await send(channel(url=f"http://127.0.0.1:{flood.port}/"))
    closing = await serve(answers.closing)
    with pytest.raises(Undelivered):
        await send(channel(url=f"http://127.0.0.1:{closing.port}/"))


async def test_a_url_that_is_a_secret_is_shown_by_its_host_alone(hook):
    """The path of many a webhook is its password."""
    made = channel(url={"env": "HOOK"}, environment={"HOOK": f"http://127.0.0.1:{hook.port}/services/{CANARY}"})
    await send(made)
    assert CANARY not in repr(made) + made.place
    assert f"/services/{CANARY}" in made.secrets


async def test_nothing_stays_open_when_it_is_cut_off(serve, answers):
    """A receiver that says nothing holds a connection for no longer than the timeout."""
    silent = await serve(answers.silent)
    async with anyio.create_task_group() as group:
        group.start_soon(send, channel(url=f"http://127.0.0.1:{silent.port}/"))
        await silent.connected.wait()
        group.cancel_scope.cancel()
    await silent.all_closed.wait()
    assert silent.connections == 1


# -- templates ---------------------------------------------------------------------------------------------------------


@given(st.text(max_size=60), st.text(max_size=60))
def test_what_a_target_says_stays_within_its_text(target, error):
    """Whatever it holds: it is escaped for JSON, and not looked at again."""
    made = template('{"text": "{target}: {error}", "n": {members}, "fixed": ["{kind}"]}')
    message = evolve(MESSAGE, target=target, error=error, members=3)
    found = json.loads(made.render(Notification((message,))))
    assert found == {"text": f"{target}: {error}", "n": 3, "fixed": ["trigger"]}


@pytest.mark.parametrize("said", ["{{7*7}}", "${HOME}", "{x.__class__}", "{key}", "%0a", '"}, "admin": {"a": "', "\\"])
def test_nothing_in_a_target_is_an_expression(said):
    """There are names that we know, and text."""
    made = template('{"text": "{target}"}')
    assert json.loads(made.render(Notification((evolve(MESSAGE, target=said),)))) == {"text": said}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('{"text": "{tagret}"}', "there is no {tagret}, did you mean 'target'?"),
        ('{"text": "{target.__class__}"}', "there is no {target.__class__}"),
        ('{"text": {target}}', "JSON once its names are replaced"),
        ('{"text": "{target}"', "JSON once its names are replaced"),
        ('{"ended": {seconds}}', "JSON once its names are replaced"),
        ("", "expected text"),
        (7, "expected text"),
    ],
)
def test_a_template_that_would_not_work_is_refused_when_it_is_read(wrong, words):
    """And not when something is down."""
    with pytest.raises(Unfit) as caught:
        template(wrong)
    assert words in str(caught.value)


async def test_a_template_is_posted_in_the_place_of_our_own_json(hook):
    """As a chat wants it."""
    text = '{"text": "[{status}] {text}", "username": "timerqueue"}'
    await send(channel(url=f"http://127.0.0.1:{hook.port}/", template=text))
    assert hook.got[0][2] == {"text": "[down] shop is down: connection refused", "username": "timerqueue"}


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "ftp://example.org"}, "a URL that begins with one of http://, https://"),
        ({"url": "${HOOK}"}, '{ env = "HOOK" }'),
        ({"url": {"env": "HOOKS"}}, "expected the environment variable HOOKS, found none of that name"),
        ({"url": {"file": "nowhere"}}, "a file that can be read (no such file or directory)"),
        ({"url": {"file": "a\0b"}}, "no name of a file holds NUL"),
        ({"url": 7}, 'text, { env = "NAME" } or { file = "PATH" }'),
        ({"url": f"http://u:{CANARY}@host:99999/"}, "a port from 1 to 65535"),
        ({"headers": {"A\nB": "c"}}, "names of header fields"),
        ({"headers": {"A": f"{CANARY}\r\nEvil: 1"}}, "text on one line for the header A"),
        ({"headers": {"Content-Length": "7"}}, "other than those that belong to the request itself"),
        ({"headers": []}, "a table such as"),
        ({"verify": "yes"}, "true or false"),
    ],
)
def test_bad_options_are_refused_without_their_secrets(options, words, tmp_path):
    """At the edge, with what to do."""
    with pytest.raises(Unfit) as caught:
        channel(folder=tmp_path, **options)
    assert words in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_secret_does_not_show_itself():
    """Not even where somebody prints it in a hurry."""
    assert CANARY not in repr([Secret(CANARY)])
