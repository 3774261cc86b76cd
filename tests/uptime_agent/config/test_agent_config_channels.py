"""[[channel]], [notify] and `notify` of a check: read strictly, with the line of each mistake."""

import pytest

from uptime_agent.config.config import parse_config
from uptime_agent.notify import Digest, MessageRate
from uptime_agent.toml import ConfigError

CHECK = "[[check]]\nurl = 'http://a.example'\n"
OPS = "[[channel]]\nname = 'ops'\nkind = 'webhook'\nurl = 'http://hook.example/x'\n"


def parse(text, environment=None, **options):
    return parse_config(text, "uptime.toml", environment or {}, **options)


def test_channels_and_rules_are_read():
    """With what holds where nothing is said."""
    config = parse(f"[notify]\nreminders = '4h'\nexpiry = '2d'\ndigest = false\n{OPS}rate = '20/1m'\n{CHECK}")
    (way,) = config.channels.values()
    assert (way.channel.place, way.timeout, way.rate) == ("http://hook.example", 10.0, MessageRate(20, 60.0))
    assert (config.rules.reminders, config.rules.expiry, config.rules.digest) == (4 * 3600, 2 * 86400, None)
    assert config.targets[0].notify is None
    config = parse(f"[defaults]\nnotify = ['ops']\n{OPS}{CHECK}{CHECK}name = 'b'\nnotify = []\n")
    assert [target.notify for target in config.targets] == [("ops",), ()]
    assert config.rules.digest == Digest(10, 30.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OPS + OPS + CHECK, "uptime.toml:5: [[channel]] 'ops': the name is taken by the channel on line 1"),
        (
            OPS + CHECK + "notify = ['opps']",
            "uptime.toml:7: [[check]] number 1: notify: there is no [[channel]] 'opps'",
        ),
        (OPS + CHECK + "notify = ['opps']", "did you mean 'ops'?"),
        ("[defaults]\nnotify = ['x']\n" + CHECK, "uptime.toml:2: [defaults]: notify: there is no [[channel]] 'x'"),
        (CHECK + "name = 'notify:x'", "no check may be called notify:..."),
        (CHECK + "name = 'act:pause:target:x'", "no check may be called act:..."),
        (CHECK + "name = 'group:x'", "no check may be called group:..."),
        (
            "[[channel]]\nname = 'a b'\nkind = 'webhook'\nurl = 'http://a'\n" + CHECK,
            "uptime.toml:2: [[channel]] number 1",
        ),
        ("[[channel]]\nname = 'ops'\nkind = 'slack'\n" + CHECK, 'one of "webhook", "command", "email" or "apprise"'),
        ("[[channel]]\nname = 'ops'\nkind = 'email'\n" + CHECK, "the key 'host' is missing"),
        (OPS + "to = 'a@example.org'\n" + CHECK, "to: is for channels of kind email"),
        (OPS + "urll = 'x'\n" + CHECK, "unknown key 'urll' in [[channel]] 'ops', did you mean 'url'?"),
        (OPS + "rate = '20'\n" + CHECK, 'a number of messages and a time, as in "20/1m"'),
        (OPS + "rate = '0/1m'\n" + CHECK, 'a number of messages and a time, as in "20/1m"'),
        ("[notify]\nremind = '1h'\n" + CHECK, "unknown key 'remind' in [notify], did you mean 'reminders'?"),
        ("[notify]\ndigest = 10\n" + CHECK, '{ above = 10, within = "30s" }, or false'),
        ("channel = 7\n" + CHECK, "tables that begin with [[channel]]"),
    ],
)
def test_a_mistake_about_channels_is_told_with_its_line(text, words):
    """Before anything runs."""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_history_is_read_without_the_secrets_of_channels():
    """A check may still name a channel that cannot be made then."""
    text = "[[channel]]\nname = 'ops'\nkind = 'webhook'\nurl = { env = 'HOOK' }\n" + CHECK + "notify = ['ops']\n"
    assert parse(text, needs_secrets=False).channels == {}
    with pytest.raises(ConfigError, match="expected the environment variable HOOK"):
        parse(text)
    config = parse(text, {"HOOK": "http://hook.example/t0k3n-of-ours"})
    assert "/t0k3n-of-ours" in config.secrets
