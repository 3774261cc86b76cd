"""Configurations that were changed in any way, of ours and of other monitors, and the import of one of those."""

import json
import random
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

from uptime_agent.imports import IMPORTERS, NotImported, imported
from uptime_agent.output import problems_of

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "tests" / "uptime_agent" / "imports"
FILES = {"gatus": "gatus.yaml", "blackbox": "blackbox.yml", "kuma": "kuma.json", "heartbeat": "heartbeat.yml"}
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
TARGETS = {
    "http_post_2xx": ["https://shop.example"],
    "smtp_starttls": ["mail.example:25"],
    "pings": ["gw.example"],
    "names": ["192.0.2.53"],
}

PIECES = [
    b"&a [*a, *a]", b"*a", b"<<: *a", b"!!binary 'AA'", b"!!python/object:os.system x", b"? [a, b] : c", b"--- \n...",
    b"!!int x", b"- " * 300, b"a: " * 300, b"[" * 300, b"%YAML 9.9\n---", b"|2\n x", b"> \n", b"\t- a", b"'''", b'"""',
    b"[[check]]\n", b"a.b.c = 1\n", b"[a]\n[a]\n", b"1979-05-27T07:32:00Z", b"inf", b"nan", b"0x_1", b"null", b"true",
    b"{ a = { b = 1 } }", b"\xef\xbb\xbf", b"\x85", b"\xe2\x80\xa8", b"1e999", b"9" * 400, b".inf", b"~",
]  # fmt: skip
"""Pieces of YAML and TOML that mean something to a reader."""

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


def rearranged(whole, count, seed=2):
    """Yield so many trees like that one, of which some values are others, gone or elsewhere."""
    rng = random.Random(seed)
    places = [path for path in places_in(whole) if path]
    for _ in range(count):
        tree = deepcopy(whole)
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
        found = imported(monitor, drafts, left, problems_of)
        assert not found.checks or list(problems_of(found.text)) == []
        told = found.left
    assert all(each and "Traceback" not in each for each in told)
