"""Kinds of check from other distributions: really installed, found by entry point; none costs another anything."""

import sys
from importlib.metadata import distributions

import pytest

from uptime_agent.checks import KINDS, Clash, gathered
from uptime_agent.checks.kinds import COMMON, GROUP
from uptime_agent.config.target import Common, read_target
from uptime_agent.text import parse_url
from uptime_agent.toml import Section, Unfit

GOOD = """
from attrs import field, frozen
from uptime_agent.checks import Clash, Finding, Kind
from uptime_agent.toml import text, whole

@frozen(kw_only=True)
class Teapot:
    url: object
    size: int = 1
    brand: str = ""
    secrets: frozenset = frozenset()

    def __attrs_post_init__(self):
        if self.size == 7:
            raise Clash("size", "7 is no size of a teapot: make it 8")

    async def attempt(self, at):
        return Finding(detail={"address": at.address, "size": self.size})

KIND = Kind(
    "teapot", {"teapot": 0}, Teapot, {"size": whole(1, 9), "brand": text}, is_resolved=False, least_interval=3600
)
"""

BROKEN = {
    "raises": ("raise RuntimeError('out of tea')", "RuntimeError: out of tea"),
    "exits": ("raise SystemExit(3)", "SystemExit: 3"),
    "lacks": ("OTHER = 1", "AttributeError: "),
    "is_no_kind": ("KIND = 'tea'", "TypeError: expected a Kind, found a str"),
    "has_the_name_of_ours": (GOOD.replace('"teapot",', '"tcp",'), "there is a kind 'tcp' already"),
    "has_a_scheme_of_ours": (
        GOOD.replace('"teapot": 0', '"https": 0'),
        "the scheme https:// is that of http checks",
    ),
    "has_a_common_key": (GOOD.replace('"size":', '"interval":'), "the option 'interval' is a key that every check has"),
    "has_no_scheme": (GOOD.replace('{"teapot": 0}', "{}"), "a kind has URL schemes with default ports"),
    "has_no_word": (GOOD.replace('"teapot",', '"Tea pot",'), "the name of a kind is a word"),
    "has_a_bad_port": (GOOD.replace('{"teapot": 0}', '{"teapot": 65536}'), "a kind has URL schemes with default ports"),
    "has_a_bad_interval": (GOOD.replace("3600", "float('nan')"), "a least interval is a number of seconds"),
    "has_no_reader": (GOOD.replace("whole(1, 9)", "9"), "a reader for each option"),
}


def install(folder, name, source, version="1.5"):
    """Put a distribution with a kind of check into a folder, as pip would."""
    module = f"{name}_module"
    (folder / f"{module}.py").write_text(source)
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\n{name} = {module}:KIND\n")


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Install distributions, given by name and source, and gather what they bring."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def gather(**sources):
        for name, source in sources.items():
            install(tmp_path, name, source)
            sys.modules.pop(f"{name}_module", None)
        every = distributions(path=[str(tmp_path)])
        return gathered(entry for each in every for entry in each.entry_points)

    return gather


def test_an_installed_kind_is_there_after_ours(found):
    """With its schemes, and nothing to complain about."""
    kinds = found(teapot=GOOD)
    assert [each.name for each in kinds.every] == [*(each.name for each in KINDS), "teapot"]
    assert kinds.ports["teapot"] == 0
    assert kinds.troubles == {}


@pytest.mark.parametrize("name", BROKEN)
def test_a_kind_that_does_not_load_or_fit_is_named_and_left_out(found, name):
    """By its distribution, with the reason; the good one beside it is there."""
    source, reason = BROKEN[name]
    kinds = found(**{name: source, "zz": GOOD})
    assert [each.name for each in kinds.every][-1] == "teapot"
    assert len(kinds.every) == len(KINDS) + 1
    (trouble,) = kinds.troubles.values()
    assert trouble.startswith(f"the kind of check '{name}' of {name} 1.5 is left out: {name}_module:KIND: ")
    assert reason in trouble


def test_of_two_with_one_name_the_first_by_its_distribution_wins(found):
    """Whatever the order in which a machine lists them."""
    kinds = found(later=GOOD, earlier=GOOD)
    assert list(kinds.troubles) == ["later"]


def test_defects_of_a_reader_and_of_make_cost_their_own_check(found):
    """As a problem of that check, not as a traceback for the whole file."""
    source = GOOD.replace("whole(1, 9)", "lambda value: 1 // value").replace(
        "if self.size == 7", "if self.brand / 2 == 7"
    )
    kind = found(teapot=source).every[-1]
    with pytest.raises(Unfit, match="what the kind teapot can read \\(ZeroDivisionError"):
        kind.options["size"](0)
    with pytest.raises(Clash, match="the kind teapot failed to make a check: TypeError"):
        kind.make(url=parse_url("teapot://h", {"teapot": 0}))


def test_the_keys_of_every_check_are_listed():
    """A kind of another distribution must not take one of them, and nobody would notice if the list were short."""
    section = Section({"url": "tcp://h:1"}, (), "", {})
    read_target(section, Common(), {})
    assert section.problems == []
    assert set(section._asked) - {"send", "expect"} <= COMMON


CONFIG = """
[[check]]
name = "kitchen"
url = "teapot://kitchen"
size = 3
"""


async def run_with(ran, folder, content, *args, **sources):
    """Write a file, install distributions, and run a command with both."""
    for name, source in sources.items():
        install(folder, name, source)
    file = folder / "uptime.toml"
    file.write_text(content)
    return await ran(*args, str(file), PYTHONPATH=str(folder))


async def test_a_file_uses_an_installed_kind(ran, tmp_path):
    """It runs, although its host is no name that anybody could look up."""
    install(tmp_path, "teapot", GOOD)
    (tmp_path / "uptime.toml").write_text(CONFIG)
    code, out, _ = await ran(
        "run", "--once", "--json", "--store", "memory", str(tmp_path / "uptime.toml"), PYTHONPATH=str(tmp_path)
    )
    assert code == 0, out
    assert '"detail": {"address": "", "size": 3}' in out
    assert '"url": "teapot://kitchen"' in out


async def test_its_least_interval_holds(ran, tmp_path):
    """It is the default where the agent's own is shorter, and a shorter one in the file is a mistake."""
    code, out, _ = await run_with(ran, tmp_path, CONFIG, "check", teapot=GOOD)
    assert (code, "kitchen: teapot teapot://kitchen, @every 1h," in out) == (0, True), out
    (tmp_path / "uptime.toml").write_text(CONFIG + 'interval = "59m"\n')
    code, _, err = await ran("check", str(tmp_path / "uptime.toml"), PYTHONPATH=str(tmp_path))
    assert code == 2
    assert "interval: a teapot check runs every 1 h at most" in err


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("size = 7", "size: 7 is no size of a teapot: make it 8"),
        ("size = 70", "size: expected a whole number from 1 to 9, found the number 70"),
        ('mode = "all"', "mode: a teapot check has no addresses to choose from"),
        ("ip = 4", "ip: a teapot check has no addresses to choose from"),
        ('send = "x"', "send: is for tcp checks"),
    ],
)
async def test_its_mistakes_have_their_lines(ran, tmp_path, line, problem):
    """As those of our own kinds have."""
    code, _, err = await run_with(ran, tmp_path, CONFIG.replace("size = 3", line), "check", teapot=GOOD)
    assert code == 2
    assert f"uptime.toml:5: [[check]] 'kitchen': {problem}" in err


async def test_a_broken_kind_warns_and_all_else_runs(ran, tmp_path, up):
    """The agent checks what it can."""
    content = f'[[check]]\nurl = "http://127.0.0.1:{up.port}/"\n'
    code, out, err = await run_with(ran, tmp_path, content, "check", teapot="import nothing_of_that_name")
    assert code == 0
    assert "warning: the kind of check 'teapot' of teapot 1.5 is left out" in out + err


async def test_a_check_of_a_broken_kind_says_why_it_cannot_be(ran, tmp_path):
    """Instead of a list of schemes among which it ought to be."""
    code, _, err = await run_with(ran, tmp_path, CONFIG, "check", teapot="import nothing_of_that_name")
    assert code == 2
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in err
