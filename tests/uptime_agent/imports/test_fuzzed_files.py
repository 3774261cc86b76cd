"""Whatever a file holds, of ours or of another monitor: it is read, or refused in words. None ends in a traceback.

`HYPOTHESIS_PROFILE=thorough` tries 10,000 of each.
"""

import json
import random
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from foreign_monitors import NAMES
from kit import examples
from mutants import mutants
from uptime_agent.cli import _problems
from uptime_agent.config import read_config
from uptime_agent.imports import IMPORTERS, NotImported, imported
from uptime_agent.toml import ConfigError

pytestmark = pytest.mark.timeout(3_600)

SAMPLES = Path(__file__).parent
FILES = {"gatus": "gatus.yaml", "blackbox": "blackbox.yml", "kuma": "kuma.json", "heartbeat": "heartbeat.yml"}
EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*.toml"))
TARGETS = {
    "http_post_2xx": ["https://shop.example"],
    "smtp_starttls": ["mail.example:25"],
    "pings": ["gw.example"],
    "names": ["192.0.2.53"],
}
COUNT = examples(200)

# Pieces of YAML and TOML that mean something to a reader.
PIECES = [
    b"&a [*a, *a]", b"*a", b"<<: *a", b"!!binary 'AA'", b"!!python/object:os.system x", b"? [a, b] : c", b"--- \n...",
    b"!!int x", b"- " * 300, b"a: " * 300, b"[" * 300, b"%YAML 9.9\n---", b"|2\n x", b"> \n", b"\t- a", b"'''", b'"""',
    b"[[check]]\n", b"a.b.c = 1\n", b"[a]\n[a]\n", b"1979-05-27T07:32:00Z", b"inf", b"nan", b"0x_1", b"null", b"true",
    b"{ a = { b = 1 } }", b"\xef\xbb\xbf", b"\x85", b"\xe2\x80\xa8", b"1e999", b"9" * 400, b".inf", b"~",
]  # fmt: skip


VALUES = [
    None, True, False, 0, -1, 3, 600, 10**30, 1.5, "", " ", "x", "off", "0", "30s", "@every 5s", "\x00", "\u202e",
    "é" * 600, "a" * 9_000, "http://h", "https://u:p@[::1]:99999/#f", "tcp://", "://", "${X}", "$(", "*/5 * * * *", "(",
    "[BODY]", "[STATUS] == any(", "[BODY].a == pat(*", [], {}, [[]], [{}], {"": {}}, ["x", None, 3, {"a": []}],
    {"a.b": 1, "a": 2}, {"name": ["x"]},
]  # fmt: skip
"""Values that stand where others were expected."""


def places_in(value, path=()):
    """Yield where each value stands in a tree."""
    yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places_in(below, (*path, key))


def rearranged(seed, count):
    """Yield so many trees like that one, of which some values are others, gone or elsewhere."""
    rng = random.Random(2)
    places = [path for path in places_in(seed) if path]
    for _ in range(count):
        tree = deepcopy(seed)
        for _ in range(rng.choice((1, 1, 2, 4))):
            *above, last = rng.choice(places)
            with suppress(LookupError, TypeError):
                table = tree
                for key in above:
                    table = table[key]
                match rng.randrange(4):
                    case 0:
                        del table[last]
                    case 1:
                        table[last] = [table[last], deepcopy(table[last])]
                    case 2 if isinstance(table, dict):
                        table[rng.choice(("type", "url", "name", "conditions", "http", "check.send"))] = table.pop(last)
                    case _:
                        table[last] = deepcopy(rng.choice(VALUES))
        yield json.dumps(tree, indent=0).encode()


def check_import(monitor, file):
    """Import a file: it is refused in words, or becomes one that is read here."""
    try:
        drafts, left = IMPORTERS[monitor](file, {} if monitor != "blackbox" else TARGETS)
    except NotImported as exc:
        told = [str(exc)]
    else:
        found = imported(monitor, drafts, left, _problems)
        assert not found.checks or list(_problems(found.text)) == []
        told = found.left
    assert all(each and "Traceback" not in each for each in told)


@pytest.mark.parametrize("monitor", FILES)
def test_no_file_of_another_monitor_ends_in_a_traceback(monitor, tmp_path):
    """Whatever its bytes are."""
    seed = (SAMPLES / FILES[monitor]).read_bytes()
    file = tmp_path / NAMES[monitor]
    for mutant in mutants([seed, seed, seed[: len(seed) // 2], *PIECES], COUNT):
        file.write_bytes(mutant)
        check_import(monitor, file)


@pytest.mark.parametrize("monitor", FILES)
def test_no_value_in_a_file_ends_in_a_traceback(monitor, tmp_path):
    """Whatever stands where another one was expected, and what comes of it is a file that is read here."""
    seed = yaml.safe_load((SAMPLES / FILES[monitor]).read_bytes())
    file = tmp_path / NAMES[monitor]
    for tree in rearranged(seed, COUNT):
        file.write_bytes(tree)
        check_import(monitor, file)


def test_no_file_of_ours_ends_in_a_traceback(tmp_path):
    """A Config comes of it, or all that is wrong with it."""
    file = tmp_path / "uptime.toml"
    for mutant in mutants([each.read_bytes() for each in EXAMPLES] + PIECES, COUNT):
        file.write_bytes(mutant)
        try:
            told = read_config(file, {}, needs_secrets=False).warnings
        except ConfigError as refused:
            told = str(refused).splitlines()
        assert all(line.isprintable() for line in told)
