"""The channel apprise: the library itself, and a receiver of its own kind `json` on this machine."""

import pytest

from notify_kit import MESSAGE, channel
from timerqueue import SystemClock
from uptime_agent.checks import Resolver
from uptime_agent.notify import ChannelDeps, Notification, Undelivered
from uptime_agent.text.redact import Redactor

pytest.importorskip("apprise", reason="needs Apprise, which comes with the extra `notify`")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Apprise imports imghdr where there is one

CANARY = "c4n4ry-0f-4-s3rv1c3"


async def send(made):
    return await made.send(Notification((MESSAGE,)), ChannelDeps(Resolver({}), SystemClock()))


@pytest.fixture
def receiver(hook):
    """What takes messages, and repeats a secret in its answers."""
    hook.status, hook.phrase = 200, CANARY
    return hook


async def test_apprise_delivers_a_message(receiver):
    """Its subject as the title, and what is to be said as the text."""
    made = channel("apprise", url=f"json://127.0.0.1:{receiver.port}/alarms")
    assert await send(made) is None
    ((line, _, body),) = receiver.got
    assert line == "POST /alarms HTTP/1.1"
    assert (body["title"], body["message"]) == ("down: shop", "shop is down: connection refused")


async def test_what_a_service_of_apprise_does_not_take_is_not_delivered(receiver):
    """So it is tried again, and nobody reads the URL in the reason."""
    receiver.status = 500
    made = channel("apprise", url=f"json://127.0.0.1:{receiver.port}/{CANARY}")
    with pytest.raises(Undelivered, match="json:// did not take it") as caught:
        await send(made)
    assert len(receiver.got) == 1
    assert CANARY not in str(caught.value)
    assert CANARY in made.secrets


@pytest.mark.parametrize(
    ("url", "secret", "plain"),
    [
        ("json://127.0.0.1:9/production", [], ["127.0.0.1", "production"]),
        ("ntfy://db01.example.org/production-db", [], ["db01.example.org", "production-db"]),
        ("json://somebody:open-sesame@db01.example/production", ["open-sesame"], ["db01.example", "production"]),
        ("json://127.0.0.1:9/hooks/8d1f0c5e77", ["8d1f0c5e77"], ["127.0.0.1"]),
        ("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ", ["T1JJ3T3L2", "TIiajkdnlazkcOXrIdevi7FQ"], []),
        ("discord://webhookid/TokenOfLetters/", ["TokenOfLetters"], []),
    ],
)
def test_of_a_url_of_apprise_only_passwords_and_tokens_are_masked_by_themselves(url, secret, plain):
    """Hosts and topics stand in alarms of others: they said "connection refused by ***:9"."""
    clean = Redactor(channel("apprise", url=url).secrets).clean
    assert clean(f"said of {url}: no") == "said of ***: no"
    for each in secret:
        assert clean(f"-{each}-") == "-***-"
    for each in plain:
        assert clean(f"-{each}-") == f"-{each}-"


async def test_a_service_of_apprise_that_is_away_is_told_as_such(free_port):
    """As a receiver that says no."""
    with pytest.raises(Undelivered, match="json:// did not take it"):
        await send(channel("apprise", url=f"json://127.0.0.1:{free_port}/"))


@pytest.mark.parametrize("status", [200, 500])
async def test_the_url_of_apprise_is_seen_nowhere(started, config, receiver, status):
    """Not in the library's own log either, which -vv shows."""
    receiver.status = status
    url = f"json://me:{CANARY}@127.0.0.1:{receiver.port}/{CANARY}?-x={CANARY}"
    file = config(f'[[channel]]\nname = "ops"\nkind = "apprise"\nurl = "{url}"\n')
    async with started("-vv", "notify", "test", "ops", str(file), stderr=-2) as command:
        assert await command.end() == (0 if status == 200 else 1)
    assert len(receiver.got) == 1
    assert CANARY not in "".join(command.lines)
