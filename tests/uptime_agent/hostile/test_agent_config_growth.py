"""What reads texts of others takes time in proportion to their length, whatever they are made of.

What is compared is the processor time of this thread for a text and for one four times as long, in one process: 4 times
as much is in proportion, 16 times is not. Whatever else the machine does makes a measurement longer, never shorter, so
the shortest of some counts; and it is measured again before it fails.
"""

import gc
import io
import logging
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from rich.console import Console

from foreign_monitors import bring, kuma
from schedule import ScheduleError
from scheduler import Outcome, Record, Scheduler
from uptime_agent.checks import PORTS
from uptime_agent.checks.http.options import headers, status_codes
from uptime_agent.config.config import LARGEST_FILE, parse_config, read_config
from uptime_agent.config.limits import read_limits
from uptime_agent.config.place import store_place
from uptime_agent.config.preview import config_lines
from uptime_agent.show.display import Screen
from uptime_agent.show.history import json_line, plain_line
from uptime_agent.show.lines import remembered_text
from uptime_agent.show.table import draw
from uptime_agent.standing.reading import restore
from uptime_agent.standing.status import TargetStatus
from uptime_agent.text import wording
from uptime_agent.text.redact import RedactingFormatter, Redactor
from uptime_agent.text.url import host_name, masked, parse_url, secrets_in
from uptime_agent.toml.bounds import over
from uptime_agent.toml.readers import Unfit, label, megabytes, one_of, seconds, shown
from uptime_agent.toml.sections import ConfigError, Section

pytestmark = pytest.mark.slow

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
SHORT, LONG = 10_000, 40_000
IN_PROPORTION = LONG / SHORT
NOT_BY_THE_SQUARE = 2 * IN_PROPORTION
ATTEMPTS = 6
UNNOTICED = 0.02
"""Seconds. What costs less for the long text does not grow by the square: that would be 10^9 steps."""

PARTS = [
    "a", "A", "1", "1_", "ü", '"', "'", "[", "]", "[]", "{", "}", "{}", "\\", '\\"', " ", "x ", "\t", "\n", "\r\n", ".",
    "a.", "/", "://", "%", "%25", "%41", "@", ":@", "?", "&", "?a=", "=", ":", "#", ",", "*", "-", "_", "\x1b[31m",
    "\0", "\u0301\u0327", "\u202e", "header", "header=",
    "header={}", "} ", "&quot;", "\\u0041", "\\x41", "1" * 4299 + " ",
]  # fmt: skip

CHECK = "[[check]]\nurl = 'http://h'\n"
TEXTS = {
    "a text": "{}",
    "a value without quotes": "a = x{}x",
    "a key": "{} = 1",
    "a broken key": "a:{}x",
    "a value behind a broken key": "a: = x{}x",
    "a table": "[{}]",
    "parts of a key": "a.{}.b = 1",
    "a list": "a = [{}]",
    "a name": CHECK + "name = '''{}'''",
    "a text with escapes": CHECK + 'send = "{}"',
    "a text without an end": CHECK + "send = '{}\n",
    "a header": CHECK + "headers = {{ X = '{}' }}",
    "an unknown key": CHECK + "'{}' = 1",
    "a schedule": CHECK + "schedule = '{}'",
    "a URL": "[[check]]\nurl = 'http://{}'",
    "a host": "[hosts]\n'{}' = '{}'",
    "a limit": "[limits]\n'host:{}' = 1",
}
READERS = {
    "parse_url": lambda text: parse_url(text, PORTS),
    "host of a URL": lambda text: parse_url(f"http://{text}/", PORTS),
    "query of a URL": lambda text: parse_url(f"http://h/?{text}", PORTS),
    "masked": masked,
    "secrets_in": secrets_in,
    "host_name": host_name,
    "over": over,
    "printable": wording.printable,
    "shown": shown,
    "headers": lambda text: headers({text: text, "X": text}),
    "status_codes": status_codes,
    "seconds": seconds,
    "megabytes": megabytes,
    "label": label,
    "one_of": one_of({"any": 1, "all": 2}),
    "store_place": store_place(Path(), {}),
    "a server": lambda text: store_place(Path(), {})(f"postgresql://{text}"),
    "clean": Redactor(["hunter22", "aaaaa", "11111", '\\"\\"\\"', "%41%41", "     ", "x\\y\"z'"]).clean,
    "secrets": lambda text: Redactor([text, text + "x"]).clean("nothing"),
}


def log_record(text):
    """Log it, with a traceback that holds it too."""
    try:
        raise ValueError(text)  # noqa: TRY301 - it is the traceback that is wanted
    except ValueError as exc:
        failure = (type(exc), exc, exc.__traceback__)
    formatter = RedactingFormatter(Redactor(["hunter22"]), "%(message)s")
    return formatter.format(logging.LogRecord("x", logging.ERROR, "f", 1, "%s", (text,), failure))


def stored_report(text):
    """Tell of a stored result that holds it wherever there is a text."""
    result = {"status": "down", "attempt": 1, "error": text, "address": text, "detail": {text: text}}
    record = Record(
        job_id="a", due=BEGUN, attempt=1, outcome=Outcome.SUCCEEDED, started=BEGUN, ended=BEGUN, lateness=0.0,
        error=text, traceback=text, reason=None, count=1, last_due=BEGUN, result=result,
    )  # fmt: skip
    known = TargetStatus("a", "http://h", "http")
    before = {"status": "down", "since": 1.0, "counts": {}, "changes": 0, "state": None}
    restore(known, [evolve(record, result={**result, "before": before, "results": [result]})])
    console = Console(file=io.StringIO(), width=160, height=24)
    console.print(draw(Screen(targets=[known], scheduler=Scheduler(), now=lambda: 1.0), 160, 24))
    return plain_line(record) + json_line(record) + remembered_text(known)


READERS |= {"a log record": log_record, "a stored report": stored_report}


def of(part, length):
    """Repeat it up to a length."""
    return (part * (length // len(part) + 1))[:length]


def cost(read, text):
    """Seconds of this thread that it takes to read a text, or to refuse it."""
    began = time.thread_time()
    with suppress(ConfigError, Unfit, ScheduleError, ValueError):
        read(text)
    return time.thread_time() - began


def check_growth(read, make):
    """Fail if it never was in proportion."""
    gc.disable()
    try:
        short = long = float("inf")
        for _ in range(ATTEMPTS):
            short, long = min(short, cost(read, make(SHORT))), min(long, cost(read, make(LONG)))
            if long <= max(NOT_BY_THE_SQUARE * short, UNNOTICED):
                return
    finally:
        gc.enable()
    pytest.fail(f"{short * 1e3:.1f} ms for {SHORT} characters, {long * 1e3:.1f} ms for {LONG}")


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_no_reader_is_slow_with_a_long_text(reader):
    """Whatever it is made of."""
    for part in PARTS:
        check_growth(reader, lambda length, part=part: of(part, length))


@pytest.mark.parametrize("shape", TEXTS.values(), ids=TEXTS)
def test_no_configuration_is_slow_to_be_refused(shape):
    """Wherever in it the long text stands."""
    before, *others = shape.replace("{{", "\0").replace("}}", "\1").split("{}")
    before, *others = (each.replace("\0", "{").replace("\1", "}") for each in (before, *others))
    for part in PARTS:
        check_growth(
            lambda text: parse_config(text, "uptime.toml", {}),
            lambda length, part=part: before + "".join(of(part, length) + other for other in others),
        )


@pytest.mark.parametrize(
    "line",
    [
        "[[check]]\nurl = 'http://h'\n", "[[check]]\nurl = 'x'\n", "a{n} = 1\n", "[a{n}]\n",
        "[[check]]\nwrong{n} = 1\n", "headers = {{ X = 1\n", "# header = {n}\n",
    ],
)  # fmt: skip
def test_no_configuration_is_slow_for_its_many_lines(line):
    """Right or wrong."""
    check_growth(
        lambda text: parse_config(text, "uptime.toml", {}),
        lambda length: "".join(line.format(n=n) for n in range(length // len(line) // 2)),
    )


def test_unknown_limits_are_not_compared_to_every_host():
    """Of both there may be many."""

    def read(count):
        table = {f"host:h{n}": 1 for n in range(count)} | {f"hots:{n}": 1 for n in range(count)}
        read_limits(Section(table, (), "", {}), ["http", "tcp"], {})

    check_growth(read, lambda length: length // 50)


def test_hosts_without_a_check_are_not_compared_to_every_check():
    """Of both there may be thousands."""

    def make(count):
        checks = "".join(f'[[check]]\nurl = "http://h{n}.example"\n' for n in range(count))
        limits = "".join(f'"host:g{n}.example" = 1\n' for n in range(count))
        return parse_config(f"[limits]\n{limits}{checks}", "uptime.toml", {})

    check_growth(lambda config: list(config_lines(config, BEGUN)), lambda length: make(length // 200))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{'a.' * 40}b = 1", "uptime.toml:1: a key has more than 32 parts"),
        (f"\n[{'a . ' * 40}b]", "uptime.toml:2: a key has more than 32 parts"),
        ("a = { " + '"b".' * 40 + "c = 1 }", "uptime.toml:1: a key has more than 32 parts"),
        (f"a = {'[' * 40}{']' * 40}", "uptime.toml: brackets are nested too deeply"),
    ],
)  # fmt: skip
def test_what_would_be_slow_however_it_is_read_is_refused(text, message):
    """With its line, where it has one."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "uptime.toml", {})
    assert str(caught.value).startswith(message)


DOTS, BRACKETS = "a." * 40, "[" * 40


@pytest.mark.parametrize(
    "text",
    [
        f"contains = '{DOTS}'", f"contains = '''{DOTS}'{DOTS}'''", f'contains = """{BRACKETS}\\" {DOTS}"""',
        f"# {DOTS} {BRACKETS}", f'tags = ["{BRACKETS}", "b"]', f"contains = 'x' #{BRACKETS}",
    ],
)  # fmt: skip
def test_dots_and_brackets_in_texts_are_no_keys(text):
    """However many they are."""
    assert over(CHECK + text) is None
    assert parse_config(CHECK + text, "uptime.toml", {}).targets


def test_a_file_that_is_no_configuration_is_refused_before_it_is_read(tmp_path):
    """In one line, though it has no end."""
    large = tmp_path / "large.toml"
    with large.open("wb") as opened:
        opened.truncate(LARGEST_FILE + 1)
    for file in (large, Path("/dev/zero")):
        with pytest.raises(ConfigError) as caught:
            read_config(file, {})
        assert str(caught.value) == f"{file}: more than 10 MB: that is no configuration"


def test_very_many_mistakes_are_not_all_told():
    """A hundred are enough for a start; the others are counted."""
    with pytest.raises(ConfigError) as caught:
        parse_config("[[check]]\n" * 250, "uptime.toml", {})
    lines = str(caught.value).splitlines()
    assert (len(lines), lines[-1]) == (101, "uptime.toml: and 150 more")
    assert len(caught.value.problems) == 250


def test_who_reads_a_file_stops_at_a_thousand_mistakes(tmp_path):
    """Nobody mends 300,000 of them by a list, and to find all took twenty seconds."""
    file = tmp_path / "uptime.toml"
    for text in ("[[check]]\n" * 2_500, "".join(f"[a{n}]\n" for n in range(2_500))):
        file.write_text(text)
        with pytest.raises(ConfigError) as caught:
            read_config(file, {})
        lines = str(caught.value).splitlines()
        assert (len(lines), lines[-1]) == (101, f"{file}: and at least 900 more")


@pytest.mark.parametrize("keys", [{}, {"tags": [{"name": "\x01"}]}, {"headers": '{"X-Token": "t"}'}])
def test_many_monitors_of_others_cost_what_they_are(keys, tmp_path):
    """Also where all of them are called alike, and where something is wrong with each."""
    site = {"type": "http", "name": "site", "url": "https://shop.example/", **keys}
    check_growth(lambda monitors: bring("kuma", monitors, tmp_path), lambda length: kuma(*[site] * (length // 200)))
