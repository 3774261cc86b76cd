"""The configuration: what is read, and what each mistake is told, with its line."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from schedule import Cron, Every, Window
from uptime_agent.checks import KINDS, PORTS
from uptime_agent.checks.http.http_check import HTTP
from uptime_agent.checks.net.resolve import Family
from uptime_agent.checks.target_check import Mode
from uptime_agent.config.config import parse_config, read_config
from uptime_agent.config.preview import config_lines
from uptime_agent.config.target import Target
from uptime_agent.toml.sections import FOREIGN, ConfigError

SCHEMES = ", ".join(f"{scheme}://" for scheme in PORTS)
GROUP = "name = 'api'\n[[group]]\nname = 'g'\n"
WINDOW = "name = 'api'\n[[maintenance]]\nname = 'w'\nschedule = '0 2 * * *'\nduration = '1h'\n"
CHECK = '[[check]]\nurl = "http://h"\n'


def read(text, environment=None):
    """Read a configuration of that text."""
    return parse_config(text, "uptime.toml", environment or {})


def test_a_check_needs_nothing_but_a_url():
    """Everything else has a default, and the name is the URL without credentials."""
    (target,) = read('[[check]]\nurl = "https://user:hunter22@example.org/x?token=abc&q=1"').targets
    assert target.name == "https://example.org/x?token=***&q=1"
    assert target.needs == ("http", "host:example.org")
    assert (target.schedule, target.timeout, target.mode) == (Every("30s"), 10.0, Mode.ANY)


def test_a_file_says_everything():
    """Each key arrives where it belongs, and [[check]] overrides [defaults]."""
    config = read("""
        [defaults]
        interval = "5s"
        timeout = 2
        mode = "all"
        ip = 4
        start = "now"
        [limits]
        total = 9
        http = 3
        tcp = inf
        "host:*" = 2
        "host:db" = 1
        [hosts]
        web = ["127.0.0.1", "::1"]
        db = "127.0.0.2"
        [network]
        probe = ["tcp://192.0.2.1:53", "https://EXAMPLE.org"]
        every = "5s"
        [[check]]
        name = "web"
        url = "http://web/"
        schedule = "*/5 * * * *"
        expect_status = [200, "300-399"]
        headers = { Accept = "text/html" }
        degraded_above = "300ms"
        max_attempts = 3
        retry_interval = "5s"
        tags = ["a", "b"]
        [[check]]
        url = "tcp://db:5432"
        interval = "1m"
        failing_interval = 15
        mode = "any"
        ip = "any"
        enabled = false
        send = "x"
    """)
    web, db = config.targets
    assert web.schedule == Cron("*/5 * * * *")
    assert (web.timeout, web.mode, web.family, web.start) == (2.0, Mode.ALL, Family.V4, "now")
    assert (web.degraded_above, web.tags) == (0.3, ("a", "b"))
    assert (web.max_attempts, web.retry_interval, web.failing_interval) == (3, 5.0, None)
    assert (db.max_attempts, db.retry_interval, db.failing_interval) == (1, 0.0, 15.0)
    assert web.check.expected.status == ((200, 200), (300, 399))
    assert (db.schedule, db.mode, db.family, db.is_enabled) == (Every("1m"), Mode.ANY, Family.ANY, False)
    assert config.limits.total == 9
    others = {kind.name: 200 for kind in KINDS if kind.name not in {"http", "tcp"}}
    assert config.limits.named == {"http": 3, "tcp": float("inf"), **others, "steps": 200, "host:*": 2, "host:db": 1}
    assert config.hosts == {"web": ("127.0.0.1", "::1"), "db": ("127.0.0.2",)}
    assert [(each.name, each.timeout) for each in config.network.probes] == [
        ("tcp://192.0.2.1:53", 2.0),
        ("https://example.org", 2.0),
    ]
    assert (config.network.every, config.network.longest) == (5.0, 7.0)


MISTAKES = [
    (
        '[[check]]\nurl = "http://a"\nschedule = "* * * * *"\nstart = "phase"',
        'uptime.toml:4: [[check]] number 1: start = "phase" is for intervals: this schedule says itself when it starts',
    ),
    ("", 'uptime.toml:1: there is nothing to check: add [[check]] and below it url = "https://..."'),
    ("name = website", 'at column 8: name = website (text needs quotes: name = "website")'),
    ("interval = 10s  # often", 'interval = 10s  # often (text needs quotes: interval = "10s")'),
    ("[limits]\nhost:* = 5", """:2: not TOML: expected '=' after a key in a key/value pair at column 5: host:* = 5"""),
    ("[limits]\nhost:* = 5", """(a key with ':' or '*' needs quotes: "host:*" = 5)"""),
    (CHECK + "ip = 4\nip = 6\n", "toml:4: not TOML: cannot overwrite a value at column 7: ip = 6 (the key ip stands "),
    (CHECK + "verify = True", "(did you mean verify = true?)"),
    ("[check]\nip = 4\n[check]\nip = 6", "(each check begins with [[check]], in double brackets)"),
    ("a = ?", "uptime.toml:1: not TOML: invalid value at column 5"),
    ("a = ", "uptime.toml:1: not TOML: invalid value at the end"),
    ("[[check]]\nurl = 'http://h'\n[", "uptime.toml:3: not TOML:"),
    (CHECK + "intervall = 5", "uptime.toml:3: unknown key 'intervall' in [[check]] number 1, did you mean 'interval'?"),
    (
        f'{CHECK}name = "api"\n\nintervall = 5',
        "uptime.toml:5: unknown key 'intervall' in [[check]] 'api', did you mean 'interval'?",
    ),
    (CHECK + "retries = 3", "unknown key 'retries' in [[check]] number 1, did you mean 'max_attempts', which counts"),
    ("[defaults]\nAttempts = 3\n" + CHECK, "unknown key 'Attempts' in [defaults], did you mean 'max_attempts'"),
    (CHECK + "tz = 'UTC'", '1, the zone stands in front of the schedule: schedule = "CRON_TZ=Europe/Berlin 0 8 '),
    (CHECK + "timezone = 'UTC'", "1, the zone stands in front of the schedule: "),
    ("[defaults]\ntz = 'UTC'\n" + CHECK, "unknown key 'tz' in [defaults], the zone stands in front of the schedule"),
    (CHECK + "every = 5", "unknown key 'every' in [[check]] number 1, did you mean 'interval'?"),
    (CHECK + "cron = '* * * * *'", "did you mean 'schedule'?"),
    (CHECK + "status = 200", "did you mean 'expect_status'?"),
    ("targets = 'private'\n" + CHECK, 'toml:1: targets: expected "any", "public", or a list such as ["public", "10.0'),
    (
        "targets = 'public'\n[[check]]\nurl = 'http://10.0.0.1/'",
        """toml:3: [[check]] number 1: url: 10.0.0.1 is not asked: "targets" in the configuration does not allow it""",
    ),
    ("targets = ['10.0.0.0/8']\n[[check]]\nurl = 'tcp://[::1]:1'", "toml:3: [[check]] number 1: url: ::1 is not asked"),
    (CHECK + "keyword = 'x'", "unknown key 'keyword' in [[check]] number 1, did you mean 'contains'?"),
    (CHECK + "json_path = 'x'", """did you mean 'json', as in json = '$.status == "ok"'?"""),
    ("[[check]]\nurl = 'tcp://h:1'\nbody = 'x'", "body: is for http checks"),
    (CHECK + "method = 'CONNECT'", 'expected a method such as "GET", "POST" or "PROPFIND", found "CONNECT"'),
    (CHECK + "body = 5", 'body: expected text, { file = "PATH" } or { env = "NAME" }, found the number 5'),
    (CHECK + "body = { env = 'NO_BODY' }", "expected the environment variable NO_BODY for the body, found none"),
    (CHECK + "body = { file = '/no/file' }", "expected a file that can be read (no such file or directory), found"),
    (CHECK + "body = { file = 'a', env = 'b' }", "expected text, { file ="),
    (CHECK + "body = '${BODY}'", 'expected { env = "BODY" }: no variable is replaced within a text, found a'),
    (CHECK + "json = 'status'", 'json: expected a path that begins with $, such as $.status, found "status"'),
    (CHECK + "json = []", "json: expected text, found an empty list"),
    (CHECK + "json = ['$.a', '$.b = 1']", "expected after $.b another .member, ['member'] or [0], or a comp"),
    (CHECK + "json = '$.a < true'", "json: expected a number or a text after <"),
    (CHECK + "json = '$.a == [1]'", 'expected a number, true, false, null or a "text" to compare with, not [1]'),
    (CHECK + "regex = '(a'", "regex: expected a regular expression that RE2 knows (missing ): (a), found"),
    (CHECK + "regex = '(?=a)'", "regex: expected a regular expression that RE2 knows (invalid perl operator: (?=)"),
    (CHECK + "regex = '(.{1,100}x){9}'", "expected a smaller regular expression (it has "),
    (CHECK + "expect_headers = 'x'", "expect_headers: expected a table such as { Content-Type = "),
    (CHECK + "expect_headers = { X = 5 }", "text on one line in which * stands for any text, or false for none"),
    (CHECK + "expect_headers = { 'X Y' = 'a' }", "expected names of header fields such as Accept, found"),
    (CHECK + "not_contains = ''", 'not_contains: expected text, found ""'),
    (CHECK + "insecure = true", "did you mean verify = false?"),
    (CHECK + "alert = 'x'", "unknown key 'alert' in [[check]] number 1: the agent tells people over channels: add a "),
    ("[alert]\nurl = 'x'\n" + CHECK, "uptime.toml:1: unknown key 'alert': the agent tells people over channels"),
    ("[defaults]\nnotify = 'x'\n" + CHECK, ":2: [defaults]: notify: expected a list of texts"),
    (
        CHECK + "headers = { X = { env = 'NO_TOKEN' } }",
        "environment variable NO_TOKEN for the header X, found none of that name: set it for the agent, as in NO",
    ),
    (CHECK + "headers = { X = 'Bearer ${TOKEN}' }", 'number 1: headers: expected { env = "TOKEN" }, with the'),
    (CHECK + "headers = { X = { file = '/no/file' } }", "headers: expected a file that can be read (no such file or"),
    (CHECK + "headers = { X = '$TOKEN' }", 'expected { env = "TOKEN" }, with the whole value in the variable, for'),
    ("[[check]]\nurl = 'http://${HOST}/'", "url: expected a URL as it is, for no variable is replaced within a text"),
    (CHECK + "schedule = 'every monday'", "schedule: expected a schedule such as"),
    (CHECK + "schedule = 'every monday'", "did you mean '0 9 * * mon'?), found \"every monday\""),
    (CHECK + "schedule = '@every monday'", 'found "@every monday"'),
    (CHECK + "interval = 'every monday'", '(days and times of day are for the key schedule, as in "0 9 * * mon")'),
    ("[defaults]\ninterval = '*/5 * * * *'\n" + CHECK, "2: [defaults]: interval: expected a duration such as "),
    ("[default]\n" + CHECK, "uptime.toml:1: unknown key 'default', did you mean 'defaults'?"),
    ("[[checks]]\nurl = 'http://h'", "uptime.toml:1: unknown key 'checks', did you mean 'check'?"),
    ("[defaults]\nurl = 'x'\n" + CHECK, "uptime.toml:2: unknown key 'url' in [defaults]; there is degraded_above, "),
    ("defaults = 5\n" + CHECK, "uptime.toml:1: defaults: expected a table [defaults], found the number 5"),
    (CHECK + "max_attempts = 0", "max_attempts: expected a whole number from 1 to 10, found the number 0"),
    (CHECK + "retry_interval = 0", "retry_interval: expected a duration such as"),
    (CHECK + 'failing_interval = "soon"', "failing_interval: expected a duration such as"),
    (CHECK + GROUP + "members = ['ap']", "[[group]] 'g': there is no check called 'ap', did you mean 'api'"),
    (CHECK + GROUP + "members = ['api']\ndown_if = '1 of 3'", "down_if: of 3, but the group has 1 members"),
    (CHECK + GROUP + "members = ['api']\ndown_if = 'most'", 'down_if: expected "any", "all" or "k of n"'),
    (CHECK + GROUP.replace("'g'", "'api'") + "members = ['api']", "the name 'api' is taken"),
    (CHECK + GROUP, "[[group]] 'g': the key 'members' is missing"),
    (CHECK + WINDOW + "targets = ['ap']", "there is no check called 'ap', did you mean 'api'"),
    (CHECK + WINDOW + "tags = ['x']", "[[maintenance]] 'w': no check has the tag 'x'"),
    (CHECK + WINDOW + "target = 'x'", "unknown key 'target' in [[maintenance]] 'w', did you mean 'targets'"),
    (CHECK + WINDOW.replace("0 2 * * *", "@every 1h"), "schedule: expected a schedule by the calendar"),
    (CHECK + WINDOW.replace("0 2 * * *", "nonsense"), "schedule: expected a schedule by the calendar"),
    (CHECK + "[[maintenance]]\nname = 'w'", "[[maintenance]] 'w': the key 'schedule' is missing"),
    (CHECK + "name = 'api'\ndepends_on = ['ap']", "there is no check or group called 'ap', did you mean 'api'"),
    (
        CHECK + "depends_on = ['sit']\n" + GROUP.replace("'g'", "'site'") + "members = ['api']",
        "depends_on: there is no check or group called 'sit', did you mean 'site'",
    ),
    (
        CHECK + "depends_on = ['g']\n" + GROUP + "members = ['api']",
        "[[check]] 'api': depends_on: a circle, in which nobody is above: ",
    ),
    (CHECK + GROUP + "members = ['api']\nnotify = ['op']", "notify: there is no [[channel]] 'op'"),
    (CHECK + "name = 'a'\ndepends_on = ['a']", "[[check]] 'a': depends_on: a circle, in which nobody is above: a > a"),
    (CHECK + "depends_on = 5", "depends_on: expected"),
    (CHECK + "[network]\nprobe = []", "[network]: probe: expected a list of 1 to 16 URLs"),
    (CHECK + "[network]\nprobe = 'tcp://h'", "[network]: probe: expected"),
    (CHECK + "[network]\nevery = '1h'", "[network]: every: expected a duration up to 30 s"),
    (CHECK + "[network]\nprobes = ['tcp://h:1']", "unknown key 'probes' in [network], did you mean 'probe'"),
    (CHECK + "max_attempts = true", "max_attempts: expected a whole number from 1 to 10, found true"),
    ("[defaults]\nmax_attempts = 1.5\n" + CHECK, "toml:2: [defaults]: max_attempts: expected a whole number"),
    ("check = 5", "uptime.toml:1: check: expected tables that begin with [[check]], found the number 5"),
    ("[[check]]\nname = 'x'", "uptime.toml:1: [[check]] 'x': the key 'url' is missing"),
    ("[[check]]\nurl = 5", "uptime.toml:2: [[check]] number 1: url: expected text, found the number 5"),
    ("[[check]]\nurl = 'h'", f'one of {SCHEMES} (did you mean http://h?), found "h"'),
    ("[[check]]\nurl = 'htps://h'", "did you mean https://?"),
    ("[[check]]\nurl = 'ftp://h'", f'expected a URL that begins with one of {SCHEMES}, found "ftp://h"'),
    ("[[check]]\nurl = 'http://'", "expected a host after http://"),
    ("[[check]]\nurl = 'http://h:99999'", "expected a port from 1 to 65535"),
    ("[[check]]\nurl = 'http://h:x'", "expected a port from 1 to 65535"),
    ("[[check]]\nurl = 'http://[::1'", "expected an IPv6 address in brackets, as in http://[::1]:8080/"),
    ("[[check]]\nurl = 'http://[foo]/'", "expected an IPv6 address in brackets"),
    ("[[check]]\nurl = 'http://a\u2100b/'", "expected a host without characters that stand for one of / ? # @ :"),
    ("[[check]]\nurl = 'http://a..b'", "expected a host name that can be written in ASCII"),
    ("[[check]]\nurl = 'http://h/a b'", "expected a URL without blanks"),
    ("[[check]]\nurl = 'http://h/#a'", "expected a URL without a fragment"),
    ("[[check]]\nurl = 'tcp://h'", "expected tcp://host:port, with a port"),
    ("[[check]]\nurl = 'tcp://h:1/x'", "expected tcp://host:port and nothing after it"),
    (CHECK + "timeout = 'abc'", 'timeout: expected a duration such as "30s", "1m30s" or "500ms", found "abc"'),
    (CHECK + "timeout = 0", "timeout: expected a duration such as"),
    (CHECK + "timeout = -1", "found the number -1"),
    (CHECK + "timeout = true", "found true"),
    (CHECK + "timeout = nan", "found the number nan"),
    (CHECK + "interval = 1979-05-27", "found a date"),
    (CHECK + "mode = 'both'", 'mode: expected one of "any" or "all", found "both"'),
    (CHECK + "ip = 5", 'ip: expected one of "any", "4", "6", 4 or 6, found the number 5'),
    (CHECK + "enabled = 'no'", 'enabled: expected true or false, found "no"'),
    (CHECK + "tags = 'a'", 'tags: expected a list of texts such as ["a", "b"], found "a"'),
    (CHECK + "name = ''", 'name: expected text, found ""'),
    (CHECK + "schedule = '* * *'", "schedule: expected a schedule such as"),
    (CHECK + "interval = 5\nschedule = '@hourly'", ":4: [[check]] number 1: schedule: there is an interval too"),
    (CHECK + "expect_status = 999", 'a status such as 200, "200-299" or a list of these, found the number 999'),
    (CHECK + "method = 'get'", 'expected a method such as "GET", "POST" or "PROPFIND" (in capitals: GET), found'),
    (CHECK + "redirects = 6", "redirects: expected a whole number from 0 to 5, found the number 6"),
    (CHECK + "max_body = -1", "max_body: expected a whole number of bytes from 0 to"),
    (CHECK + "ca_file = '/nowhere.pem'", "ca_file: expected a file of certificates in PEM (No such file or directory)"),
    (CHECK + "send = 'x'", "uptime.toml:3: [[check]] number 1: send: is for tcp checks"),
    ("[[check]]\nurl = 'tcp://h:1'\ncontains = 'x'", "uptime.toml:3: [[check]] number 1: contains: is for http checks"),
    ("[[check]]\nurl = 'http://127.0.0.1'\nip = '6'", "ip: asks for IPv6, but 127.0.0.1 is an IPv4 address"),
    (CHECK + r'name = "a\u00a0b"', r"toml:3: [[check]] number 1: name: expected text that can be seen, without '\xa0'"),
    (CHECK + f"name = '{'x' * 513}'", "name: expected at most 512 characters, not 513"),
    (CHECK + r'tags = ["a", "b\u0000"]', r"3: [[check]] number 1: tags: expected text that can be seen, without"),
    (f"[[check]]\nurl = 'http://h/{'x' * 600}'", "toml:2: [[check]] number 1: the URL is no name, give the check one"),
    (CHECK + r'ca_file = "a\u0000b"', "ca_file: expected a file of certificates in PEM (no name of a file holds NUL)"),
    (CHECK + f"expect_status = 0x{'f' * 5000}", "these, found a number of more than 60 digits"),
    (CHECK + f"interval = 0x{'f' * 5000}", "interval: expected a duration such as"),
    (f"{CHECK}[limits]\nhttp = 1{'0' * 400}", "toml:4: [limits]: http: expected a whole number from 1, or inf for"),
    (f"{CHECK}timeout = 1{'0' * 5000}", "uptime.toml:3: a number has more than 4,300 digits"),
    (f"a = {'[' * 3000}{']' * 3000}", "uptime.toml: brackets are nested too deeply"),
    (CHECK + "[limits]\n'host:a' = 1\n'host:A.' = 2", ":5: [limits]: host:A.: is the same host as host:a: keep one"),
    (CHECK + "[hosts]\n'a..b' = '127.0.0.1'", ":4: [hosts]: a..b: expected a host name that can be written in ASCII"),
    (CHECK * 2, "uptime.toml:3: [[check]] number 2: the name is taken by the check on line 1"),
    (CHECK + "[limits]\nhtp = 5", "uptime.toml:4: unknown key 'htp' in [limits], did you mean 'http'?"),
    (CHECK + "[limits]\nhttp = 0", "expected a whole number from 1, or inf for no limit, found the number 0"),
    (CHECK + "[limits]\nhttp = 1.5", "found the number 1.5"),
    (CHECK + "[hosts]\nh = 'localhost'", 'h: expected IP addresses such as ["127.0.0.1", "::1"], found "localhost"'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=[message[-60:] for _, message in MISTAKES])
def test_a_mistake_is_told_with_its_line(text, message):
    """File, line, key, what was expected, what was found, and the nearest known key."""
    if "regex = " in text:
        pytest.importorskip("re2")
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("uptime.toml:")


def test_the_advice_for_foreign_words_is_right():
    """The keys are ours, and the schedule that shows where a zone stands is one."""
    known = {"max_attempts", "interval", "schedule", *HTTP.options}
    assert {key for key, _ in FOREIGN.values()} <= known
    assert not known & set(FOREIGN)
    assert read(CHECK + FOREIGN["tz"][1].partition(": ")[2]).targets[0].schedule.tz == "Europe/Berlin"


def test_a_variable_that_is_nearly_there_is_named(monkeypatch):
    """By its name alone."""
    monkeypatch.setenv("SHOP_TOKEN", "hunter22")
    with pytest.raises(ConfigError) as caught:
        read("store = { env = 'SHOPTOKEN' }\n" + CHECK + "headers = { X = { env = 'SHOP_TOKNE' } }", dict(os.environ))
    assert str(caught.value).count("found none of that name: did you mean SHOP_TOKEN?") == 2
    assert "hunter22" not in str(caught.value)


def test_a_dollar_in_a_text_is_one():
    """As passwords have them."""
    (target,) = read(CHECK + "headers = { X = 'pa$$word', Y = '$ecret' }").targets
    assert target.check.headers == {"X": "pa$$word", "Y": "$ecret"}


def test_an_empty_line_is_not_repeated():
    """A text that breaks off at its end has nothing there to be shown."""
    with pytest.raises(ConfigError, match=r"invalid value at the end$"):
        read(CHECK + "tags = [1,\n")


def test_a_host_has_one_form_wherever_it_is_named():
    """In URLs, [hosts] and limits: capitals, letters beyond ASCII, a dot at the end and long addresses are the same."""
    config = read("""
        [hosts]
        "München.example." = "127.0.0.1"
        [limits]
        "host:Shop.Example" = 1
        "host:MÜNCHEN.example" = 2
        "host:0:0::1" = 3
        [[check]]
        url = "http://shop.example./"
        [[check]]
        url = "http://xn--mnchen-3ya.example/"
        [[check]]
        url = "http://[::0:1]/"
    """)
    assert [config.limits.named[target.needs[1]] for target in config.targets] == [1, 2, 3]
    assert config.hosts == {config.targets[1].check.url.host: ("127.0.0.1",)}


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file():
    """Nobody likes to be told one per attempt."""
    with pytest.raises(ConfigError) as caught:
        read("[limits]\nx = 1\n[[check]]\nurl = 'http://a'\ntimeout = 'a'\ninterval = 'b'\n[[check]]\n")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["2", "5", "6", "7"]


@pytest.mark.parametrize("url", ["http://h:99999", "htp://h", "h", "HTTP://"])
def test_a_wrong_url_hides_no_other_mistake(url):
    """Nor does any mistake hide that a name is taken. Without a known scheme options of every kind are read."""
    options = ["expect_status = 999", "headers = 5", "verify = 'no'", "redirects = 9", "max_body = -1"]
    text = "\n".join(["[[check]]", "name = 'a'", f"url = '{url}'", *options, "[[check]]", "name = 'a'", "url = 5"])
    with pytest.raises(ConfigError) as caught:
        read(text)
    told = str(caught.value)
    assert [int(line.split(":")[1]) for line in told.splitlines()] == [3, 4, 5, 6, 7, 8, 9, 11]
    assert "the name is taken by the check on line 1" in told


def test_a_name_that_cannot_be_used_is_not_taken():
    """Two checks with the same mistake have one mistake each."""
    with pytest.raises(ConfigError) as caught:
        read((CHECK + "name = 5\n") * 2)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["3", "6"]


@pytest.mark.parametrize(
    "text",
    [
        "[[check]]\nurl = 'htps://user:hunter22@h/'",
        "[[check]]\nurl = 'user:hunter22@h'",
        "[[check]]\nurl = 'http://h/ x?password=hunter22'",
        "[[check]]\nurl = 'http://user:hunter22\u2100@h/'",
        "[[check]]\nurl = 'http://user:hunter22@[foo]/'",
        "[[check]]\nurl = 'http://user:hunter/22@h/'",
        "[[check]]\nurl = 'http://user:hunter#22@h/'",
        "[[check]]\nurl = http://user:hunter22@h",
        "[[check]]\nurl = http://h/?token=hunter22",
        "store = postgresql://me:hunter22@h/d",
        CHECK + "password = hunter22",
        CHECK + "send = hunter22",
        CHECK + "headers = { X = hunter22 }",
        CHECK + "headers = {\nX = hunter22 }",
        CHECK + "headers = [\n['X', hunter22]]",
        CHECK + "headers = [\n[hunter22 ]]",
        CHECK + "headers = [['X'],\n[a]\nhunter22 ]]",
        CHECK + 'contains = """\n[a]\nhunter22 = 5',
        CHECK + "[check.headers]\nX = hunter22",
        CHECK + "[check.headers]\n\n'X' = 'hunter22'\nX = 'hunter22'\n",
        CHECK + '["check"."h\\u0065aders"]\nX = hunter22',
        CHECK + 'contains = """\nhunter22 = 5\n""" x',
        CHECK + "headers = { Authorization = ['hunter22'] }",
        CHECK + "headers = { Authorization = 'hunter22\\u0000' }".replace("'", '"'),
    ],
)
def test_a_mistake_tells_no_secret(text):
    """What is wrong with a secret can be said without it."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert "hunter" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path):
    """Without a line, because there is none."""
    file = tmp_path / "none.toml"
    with pytest.raises(ConfigError) as caught:
        read_config(file, {})
    assert str(caught.value) == f"{file}: cannot read it: no such file or directory"


def test_a_file_that_is_no_text_is_told(tmp_path):
    """With the line where it stops being text."""
    file = tmp_path / "uptime.toml"
    file.write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(ConfigError) as caught:
        read_config(file, {})
    assert str(caught.value) == f"{file}:2: not UTF-8"


@pytest.mark.parametrize(
    ("file", "environment", "http", "warnings"),
    [
        ("", {}, 200, 0),
        ("", {"TIMERQUEUE_LIMIT_HTTP": "10"}, 10, 0),
        ("http = 5", {"TIMERQUEUE_LIMIT_HTTP": "10"}, 5, 0),
        ("", {"TIMERQUEUE_LIMIT_HTTP": "many"}, 200, 1),
        ("", {"TIMERQUEUE_LIMIT_HTTP": "0"}, 200, 1),
        ("", {"TIMERQUEUE_LIMIT_HTTP": "-3"}, 200, 1),
        ("", {"TIMERQUEUE_LIMIT_HTTTP": "10"}, 200, 1),
    ],
)
def test_the_file_beats_the_environment_beats_the_default(file, environment, http, warnings):
    """A variable that makes no sense is warned about and not used."""
    config = read(f"[limits]\n{file}\n{CHECK}", environment)
    assert config.limits.named["http"] == http
    assert len(config.warnings) == warnings
    assert all(name in config.warnings[0] for name in environment if warnings)


def test_files_of_a_check_lie_beside_the_configuration(certificate, tmp_path, monkeypatch):
    """Wherever the agent is started: those of a step too. A whole path stays what it is."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "some.pem").write_bytes(certificate[0].read_bytes())
    (tmp_path / "conf" / "body").write_text("what is sent")
    file = tmp_path / "conf" / "uptime.toml"
    options = 'ca_file = "some.pem"\nbody = { file = "body" }\n'
    step = f'[[check]]\nname = "steps"\n[[check.step]]\nurl = "https://h"\n{options}'
    whole = f'[[check]]\nurl = "tls://h:1"\nca_file = "{certificate[0]}"\n'
    file.write_text(f'[[check]]\nurl = "https://h"\n{options}{whole}{step}')
    monkeypatch.chdir(tmp_path)
    found, tls, steps = read_config(Path("conf/uptime.toml"), {}).targets
    assert (found.check.ca_file, found.check.body.content) == ("conf/some.pem", b"what is sent")
    assert tls.check.ca_file == str(certificate[0])
    assert steps.check.steps[0].check.body.content == b"what is sent"


def test_headers_and_tokens_may_stand_in_files(tmp_path):
    """As the docs say of what is given by reference; and then they are secrets, whatever the header is called."""
    (tmp_path / "secret").write_text("a-secret-of-ours-1\n")
    file = tmp_path / "uptime.toml"
    file.write_text(
        """
        push = { listen = "127.0.0.1:8075" }
        [[check]]
        url = "http://h"
        headers = { X-Team = { file = "secret" }, X-Room = { env = "ROOM" }, Accept = "text/html" }
        [[check]]
        url = "push://backup"
        token = { file = "secret" }
        [[check]]
        name = "steps"
        [[check.step]]
        url = "http://h"
        headers = { X-Team = { file = "secret" } }
        """
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOM", "the-room-of-ours")
        site, backup, steps = (target.check for target in read_config(file, {}).targets)
    assert site.headers == {"X-Team": "a-secret-of-ours-1", "X-Room": "the-room-of-ours", "Accept": "text/html"}
    assert site.secrets == {"a-secret-of-ours-1", "the-room-of-ours"}
    assert backup.token == "a-secret-of-ours-1"
    assert steps.steps[0].check.headers == {"X-Team": "a-secret-of-ours-1"}
    assert "a-secret-of-ours-1" in steps.secrets


def test_the_example_is_valid():
    """It is what users start from, and shows each kind but the one that postgres.toml is about."""
    config = read_config(Path(__file__).parents[3] / "examples" / "uptime.toml", {})
    assert {target.kind for target in config.targets} == {*(kind.name for kind in KINDS), "steps"} - {"postgres"}


def test_the_load_is_summed_up_in_one_pass(monkeypatch):
    """What a target needs is asked once, however many targets and hosts there are."""
    asked = []
    needs = Target.needs.fget
    monkeypatch.setattr(Target, "needs", property(lambda self: asked.append(self.name) or needs(self)))
    config = read("".join(f'[[check]]\nname = "{n}"\nurl = "tcp://h{n % 50}:1"\ninterval = 10\n' for n in range(200)))
    lines = list(config_lines(config, datetime(2026, 11, 21, tzinfo=UTC)))
    assert len(asked) == 200
    assert "    total: 200 at a time, limit 500: fits" in lines
    assert "    tcp: 200 at a time, limit 200: fits" in lines
    assert sum(line.startswith("    host:h") and "4 at a time, limit 10: fits" in line for line in lines) == 50


def test_maintenance_is_of_targets_by_name_or_tag_or_of_all():
    """A window is one of the schedule algebra, with the name as its reason."""
    text = """
        [[check]]
        name = "api"
        url = "http://h"
        tags = ["web"]
        [[check]]
        name = "db"
        url = "tcp://h:1"
        [[maintenance]]
        name = "deploy"
        schedule = "CRON_TZ=Europe/Berlin 0 2 * * sun"
        duration = "90m"
        tags = ["web"]
        [[maintenance]]
        name = "all"
        schedule = "0 3 1 * *"
        duration = "1h"
    """
    deploy, every = read(text).maintenance
    assert (deploy.name, deploy.targets, every.targets) == ("deploy", {"api"}, {"api", "db"})
    assert deploy.window == Window(Cron("0 2 * * sun", tz="Europe/Berlin"), timedelta(minutes=90), reason="deploy")


def test_groups_have_members_by_name_or_tag_and_a_number_that_are_down():
    """All by default; `k of n` says of how many, so that a member more is no surprise."""
    checks = "".join(f'[[check]]\nname = "{name}"\nurl = "http://{name}"\ntags = ["web"]\n' for name in "abc")
    text = (
        checks
        + """
        [[group]]
        name = "one"
        members = ["a", "b"]
        [[group]]
        name = "two"
        members = ["web"]
        down_if = "2 of 3"
        [[group]]
        name = "three"
        members = ["c", "web"]
        down_if = "any"
    """
    )
    assert [(each.name, each.members, each.at_least) for each in read(text).groups] == [
        ("one", ("a", "b"), None),
        ("two", ("a", "b", "c"), 2),
        ("three", ("a", "b", "c"), 1),
    ]
