"""The tables in docs/configuration.md are made by the readers of the configuration, of the words beside them.

After a change of a key: `python tests/uptime_agent/config/test_configuration_page.py --write`. A new key comes to the
page by itself; what it means is the last argument of `take`, `require` or `section`, or stands in the `Option` of a
check.
"""

import ast
import enum
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest
from attrs import asdict, frozen, has

from uptime_agent.checks.kinds import COMMON, OURS
from uptime_agent.config.config import parse_config
from uptime_agent.notify.channels import CHANNELS, Surroundings
from uptime_agent.text import parse_url
from uptime_agent.toml import ConfigError, Section, Unfit, labels, megabytes, seconds, sections

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "configuration.md"
BEGIN = "<!-- made of the agent's readers by tests/uptime_agent/config/test_configuration_page.py: begin -->"
END = "<!-- end -->"

FIRST = ("defaults", "check", "channel", "notify")
"""Tables that come first on the page. The others follow as they are read."""

URLS = {
    "dns": "dns://h/example.org",
    "domain": "domain://example.org",
    "tcp": "tcp://h:1",
    "tls": "tls://h:1",
}
"""A URL of each kind that needs more than a host."""

NAMED = {"hosts": "NAME", "limits": "host:NAME", "probes": "NAME"}
"""Tables whose keys are names, or may be."""

NEEDED = {"push": {"token": "t" * 16}}
"""Options without which a check of the kind is none."""

WRITTEN = {"seconds": "within"}
"""Keys of tables within a line that are called otherwise in Python."""

REQUIRED = object()


# -- what the readers say ----------------------------------------------------------------------------------------------


@frozen(eq=False)
class Key:
    """A key as its reader takes it. `reader` None: it is a table of its own."""

    name: str
    reader: object
    default: object
    meaning: str


def url_of(kind):
    """Return a URL that a check of the kind can have."""
    return URLS.get(kind.name, f"{next(iter(kind.schemes))}://h")


def taken(tables):
    """Have these tables read, and return the keys that are asked for in each, by the name of the table."""
    found = {}

    def note(section, name, reader, default, meaning):
        table = ".".join(each for each in section.path if isinstance(each, str))
        found.setdefault(table, {}).setdefault(name, Key(name, reader, default, meaning))

    real_take, real_require, real_section = Section.take, Section.require, Section.section

    def take(self, key, reader, default, meaning=""):
        note(self, key, reader, default, meaning)
        return real_take(self, key, reader, default, meaning)

    def require(self, key, reader, meaning=""):
        note(self, key, reader, REQUIRED, meaning)
        return real_require(self, key, reader, meaning)

    def section(self, key, meaning=""):
        note(self, key, None, None, meaning)
        return real_section(self, key, meaning)

    with (
        patch.multiple(Section, take=take, require=require, section=section, has_any=lambda self, keys: True),
        patch("uptime_agent.config.config.tomllib.loads", lambda _: tables),
    ):
        read(tables)
    return found


def read(tables):
    """Read tables as a file that holds them, and return its problems."""
    with patch("uptime_agent.config.config.tomllib.loads", lambda _: tables):
        try:
            parse_config("", "uptime.toml", {})
        except ConfigError as exc:
            return [problem.text for problem in exc.problems]
    return []


def all_keys():
    """Return all keys by table. Those of one kind of check or channel stand in tables called by kind and scheme."""
    of_top = taken({})[""]
    tables = {name: {NAMED[name]: []} if name in NAMED else {} for name, key in of_top.items() if key.reader is None}
    tables |= {name: [{}] for name, key in of_top.items() if key.reader is not None and takes(key.reader, [{}])}
    tables["check"] = [{"url": "http://h"}, {"step": [{"url": "http://h"}]}]
    tables["channel"] = [{"kind": name} for name in CHANNELS]
    found = taken(tables)
    for kind in OURS.every:
        found[f"check {kind.name}"] = {name: key_of(name, option) for name, option in kind.options.items()}
    for kind in CHANNELS.values():
        options = kind.options(Surroundings(ROOT, {}))
        found[f"channel {kind.name}"] = {
            name: key_of(name, option, is_required=name in kind.required) for name, option in options.items()
        }
    for table in ("check", "channel"):
        others = {name for each in found if each.startswith(f"{table} ") for name in found[each]}
        found[table] = {name: key for name, key in found[table].items() if name not in others}
    found["check"] = {name: key for name, key in found["check"].items() if name not in found["defaults"]}
    return found


def takes(reader, value):
    """Say whether a reader takes a value."""
    try:
        reader(value)
    except Unfit:
        return False
    return True


def key_of(name, option, *, is_required=False):
    """Make a key of an option, which may be a bare reader."""
    is_required |= getattr(option, "is_required", False)
    default = REQUIRED if is_required else getattr(option, "default", None)
    return Key(name, option, default, getattr(option, "meaning", ""))


# -- what the page says ------------------------------------------------------------------------------------------------


def expected(reader):
    """Return what a reader says that it expected, when it is given what no file can hold."""
    with pytest.raises(Unfit) as caught:
        reader(None)
    return caught.value.expected


SHORT = {
    expected(seconds): "[duration](#values)",
    expected(megabytes): "[size](#values)",
    expected(labels): "list of texts",
    'text, { env = "NAME" } or { file = "PATH" }': "text, or [by reference](#values)",
}


def value_cell(key):
    """Say which values a key has."""
    if key.reader is None:
        return "table"
    said = expected(key.reader)
    for long, short in SHORT.items():
        if said.startswith(long):
            return code(said.replace(long, short))
    return code(re.sub(r"^(a|an|one of) ", "", said))


def code(text):
    """Set what a file would hold as code."""
    pattern = r'(\[\[.*?\]\]|\[[^\]]*\](?!\()|\{[^{}]*(?:\{[^}]*\}[^}]*)?\}|"[^"]*")'
    return re.sub(pattern, r"`\1`", text)


def default_cell(key):
    """Say what holds without a key. Nothing: its meaning says so."""
    if key.default is REQUIRED:
        return "required"
    if key.reader is None or "y default" in key.meaning:
        return ""
    if key.default is None or key.default in ([], ()):
        return "none"
    written = in_toml(key.reader, key.default)
    return "" if written is None else f"`{written}`"


def in_toml(reader, value):
    """Write a value as a file would have it, such that the reader takes it for that. None: there is no such way."""
    for candidate in candidates(value):
        try:
            if reader(candidate) in (value, reader(value) if candidate is value else value):
                return written(candidate)
        except (Unfit, TypeError, ValueError):
            pass
    return None


def candidates(value):
    """Yield what a file may hold for a value."""
    if isinstance(value, enum.Enum):
        yield value.value
    if isinstance(value, int | float) and not isinstance(value, bool) and value and math.isfinite(value):
        for unit, name in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"), (2**30, " GiB"), (2**20, " MiB")):
            if value % unit == 0:
                yield f"{value / unit:.0f}{name}"
        if 0 < value < 1:
            yield f"{value * 100:g} %"
        if value == int(value):
            yield int(value)
    if isinstance(value, tuple):
        yield list(value)
    if has(type(value)):
        yield {
            WRITTEN.get(name, name): each if isinstance(each, int) else next(candidates(each))
            for name, each in asdict(value).items()
        }
    if hasattr(value, "total_seconds"):
        yield from candidates(value.total_seconds())
    yield value


def written(value):
    """Write a value in TOML."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case Mapping():
            return f"{{ {', '.join(f'{name} = {written(each)}' for name, each in value.items())} }}"
        case list():
            return f"[{', '.join(map(written, value))}]"
        case int():
            return str(value)
        case _:
            return str(value)


def rendered():
    """Render all tables, each below its heading."""
    keys = all_keys()
    top = keys.pop("")
    plain = {name: key for name, key in top.items() if name not in keys}
    lines = ["## At the top of the file", "", "Before the first table.", "", *table(plain)]
    order = [*FIRST, *(name for name in top if name in keys and name not in FIRST)]
    for name in order:
        is_many = top[name].reader is not None
        lines += ["", f"## `{f'[[{name}]]' if is_many else f'[{name}]'}`", "", sentence(top[name].meaning)]
        lines += ["", *table(keys[name])] if keys[name] else []
        lines += ["", "And all keys of `[defaults]`."] if name == "check" else []
        lines += below(name, keys)
    return "\n".join(lines)


def below(name, keys):
    """Yield the lines of what stands within a table: tables of its own, and keys of one kind."""
    for inner in (each for each in keys if each.startswith(f"{name}.")):
        of_outer = keys[name][inner.removeprefix(f"{name}.")]
        is_many = of_outer.reader is not None
        yield from ("", f"### `{f'[[{inner}]]' if is_many else f'[{inner}]'}`", "", sentence(of_outer.meaning))
        yield from ("", *table(keys[inner])) if keys[inner] else ()
        if inner == "check.step":
            yield from ("", "And all keys of its kind.")
    if name == "check":
        for kind in OURS.every:
            schemes = ", ".join(f"`{scheme}://`" for scheme in kind.schemes)
            yield from ("", f"### {schemes}", "", f"{sentence(kind.meaning)} {ports(kind)}".rstrip())
            yield from ("", *table(keys[f"check {kind.name}"]))
    if name == "channel":
        for kind in CHANNELS.values():
            yield from ("", f'### `kind = "{kind.name}"`', "", f"A channel that {kind.meaning}.", "")
            yield from table(keys[f"channel {kind.name}"])


def ports(kind):
    """Say which ports the URLs of a kind have."""
    given = {scheme: port for scheme, port in kind.schemes.items() if port}
    if given:
        said = " or ".join(map(str, given.values()))
        return f"Port {said}, unless the URL has another."
    return "The URL names the port." if None in kind.schemes.values() else ""


def sentence(text):
    """Write a meaning as a sentence."""
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def table(keys):
    """Yield the lines of a table of keys."""
    yield from ("| key | value | default | |", "|---|---|---|---|")
    for key in keys.values():
        name = key.name if re.fullmatch(r"[a-z_]+|NAME", key.name) else f'"{key.name}"'
        yield f"| `{name}` | {value_cell(key)} | {default_cell(key)} | {key.meaning} |"


def replaced(page, text):
    """Put `text` between the markers of a page."""
    before, rest = page.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


# -- whether that is true ----------------------------------------------------------------------------------------------


def every_key():
    """Yield each key with the name of its table."""
    for name, keys in all_keys().items():
        for key in keys.values():
            yield pytest.param(key, id=f"{name or 'top'}: {key.name}")


def test_the_page_shows_the_keys_that_there_are():
    """A table by hand would soon be of keys that nobody reads."""
    page = PAGE.read_text("utf-8")
    assert page == replaced(page, rendered()), (
        "run `python tests/uptime_agent/config/test_configuration_page.py --write`"
    )


@pytest.mark.parametrize("key", list(every_key()))
def test_a_key_says_what_it_means_and_what_holds_without_it(key):
    """Else give `take`, `require` or `section` its meaning as the last argument, or make its reader an `Option`."""
    assert key.meaning
    assert not key.meaning.endswith(".")
    assert default_cell(key) or key.reader is None or "y default" in key.meaning


@pytest.mark.parametrize("kind", OURS.every, ids=lambda kind: kind.name)
def test_the_default_of_an_option_is_what_holds_without_it(kind):
    """A check that is told its defaults is the check that was told nothing."""
    needed = {name: kind.options[name](value) for name, value in NEEDED.get(kind.name, {}).items()}
    url = parse_url(url_of(kind), OURS.ports)
    shown = {
        name: option(option.default)
        for name, option in kind.options.items()
        if option.default is not None and "y default" not in option.meaning
    }
    assert kind.make(url=url, **needed | shown) == kind.make(url=url, **needed)


def test_the_keys_that_kinds_may_not_take_are_those_of_all_checks():
    """Another distribution's kind with such an option would take the key from all others."""
    keys = all_keys()
    assert {*keys["check"], *keys["defaults"]} - {"step"} == COMMON


@pytest.fixture(scope="module")
def literals():
    """Find every word that stands in the agent's code: a key that is read is one of these."""
    return {
        node.value
        for file in (ROOT / "src" / "uptime_agent").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch("[a-z_]{1,40}", node.value)
    }


REFUSED = re.compile(
    r"unknown key '(?P<unknown>[^']+)'|\b(?P<foreign>[a-z_]+): is for (channels of kind )?[a-z]+( checks)?$"
)


def places():
    """Yield each table that a key may stand in: its name, what else there has to be, and how to put keys into it."""
    keys = all_keys()
    for name in keys:
        if name in ("hosts", "probes") or name.endswith(".probes"):
            continue  # whose keys are names
        outer, _, inner = name.partition(".")
        is_many = outer in keys[""] and keys[""][outer].reader is not None
        if name == "":
            yield name, {}, lambda table: table
        elif " " in name:
            outer, kind = name.split(" ")
            fixed = (
                {"kind": kind}
                if outer == "channel"
                else {"url": url_of(next(each for each in OURS.every if each.name == kind))}
            )
            yield name, fixed, lambda table, outer=outer: {outer: [table]}
        elif inner:
            yield name, {"url": "http://h"}, lambda table, outer=outer, inner=inner: {outer: [{inner: [table]}]}
        elif is_many:
            fixed = {"check": {"url": "http://h"}, "channel": {"kind": "webhook"}}.get(name, {})
            yield name, fixed, lambda table, outer=outer: {outer: [table]}
        else:
            yield name, {}, lambda table, outer=outer: {outer: table}


def on_page(name):
    """Return the keys that the page says a table has."""
    keys = all_keys()
    found = set(keys[name])
    if name.startswith("check"):
        found |= set() if name == "check.step" else keys["check"].keys() | keys["defaults"].keys()
        found |= keys["check http"].keys() if name in ("check", "check.step") else set()
    if name.startswith("channel"):
        found |= keys["channel"].keys() | (keys["channel webhook"].keys() if name == "channel" else set())
    return {each for each in found if re.fullmatch("[a-z_]+", each)}


@pytest.mark.parametrize(("name", "fixed", "around"), [pytest.param(*each, id=each[0] or "top") for each in places()])
def test_a_key_is_accepted_if_it_is_on_the_page(name, fixed, around, literals, monkeypatch):
    """Every word of the agent's code is tried in every table: it is a key of it, or it is refused as unknown."""
    monkeypatch.setattr(sections, "suggestion", lambda key, known: "")
    tried = {word for word in literals if word not in fixed and word != "step"}
    problems = read(around(fixed | {key: [] for key in sorted(tried)}))
    found = (REFUSED.search(problem) for problem in problems)
    refused = {each["unknown"] or each["foreign"] for each in found if each}
    assert tried - refused == on_page(name) - fixed.keys() - {"step"}


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(f"usage: python {sys.argv[0]} --write")
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), rendered()), "utf-8")
