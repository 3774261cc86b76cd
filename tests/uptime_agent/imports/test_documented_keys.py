"""Each key that the documentation of another monitor has is carried over with its meaning, or told with its line."""

from copy import deepcopy

import pytest

import documented_keys as known
from documented_keys import SILENT, TOLD
from foreign_monitors import bring, gatus, kuma

WEB = {"url": "https://shop.example/", "conditions": ["[STATUS] == 200"]}
STEP = {"name": "one", "url": "https://shop.example/", "conditions": ["[STATUS] == 200"]}
SITE = {"type": "http", "url": "https://shop.example/", "accepted_statuscodes": ["200-299"], "maxredirects": 5}


def module(prober, **options):
    """Write a file of one module."""
    return {"modules": {"m": {"prober": prober, prober: options}}}


def heartbeat(**monitor):
    """Write a file of one monitor."""
    return {"heartbeat": {"monitors": [{"schedule": "@every 5s", **monitor}]}}


# By a name: the monitor, a file, where the keys belong, the keys.
FORMATS = {
    "gatus endpoint": ("gatus", gatus(WEB), ("endpoints", 0), known.GATUS_ENDPOINT),
    "gatus external endpoint": (
        "gatus",
        {"external-endpoints": [{"name": "x", "token": "potato-potato-potato", "heartbeat": {"interval": "1h"}}]},
        ("external-endpoints", 0),
        known.GATUS_EXTERNAL,
    ),
    "gatus suite": (
        "gatus",
        {"suites": [{"name": "s", "endpoints": [STEP]}]},
        ("suites", 0),
        known.GATUS_SUITE,
    ),
    "gatus file": ("gatus", gatus(WEB), (), known.GATUS_FILE),
    "blackbox http": ("blackbox", module("http"), ("modules", "m"), known.BLACKBOX_HTTP),
    "blackbox tcp": ("blackbox", module("tcp"), ("modules", "m"), known.BLACKBOX_TCP),
    "blackbox dns": (
        "blackbox",
        module("dns", query_name="shop.example", query_type="A"),
        ("modules", "m"),
        known.BLACKBOX_DNS,
    ),
    "blackbox icmp": ("blackbox", module("icmp"), ("modules", "m"), known.BLACKBOX_ICMP),
    "kuma http": ("kuma", kuma(SITE), ("monitorList", 0), known.KUMA_HTTP),
    "heartbeat http": (
        "heartbeat",
        heartbeat(type="http", urls=["https://shop.example"]),
        ("heartbeat", "monitors", 0),
        known.HEARTBEAT_HTTP,
    ),
    "heartbeat tcp": (
        "heartbeat",
        heartbeat(type="tcp", hosts=["shop.example:80"]),
        ("heartbeat", "monitors", 0),
        known.HEARTBEAT_TCP,
    ),
    "heartbeat icmp": (
        "heartbeat",
        heartbeat(type="icmp", hosts=["shop.example"]),
        ("heartbeat", "monitors", 0),
        known.HEARTBEAT_ICMP,
    ),
    "heartbeat file": (
        "heartbeat",
        heartbeat(type="icmp", hosts=["shop.example"]),
        (),
        known.HEARTBEAT_FILE,
    ),
}
TARGET = {
    "http": "http://target.example",
    "tcp": "target.example:80",
    "dns": "target.example",
    "icmp": "target.example",
}
CASES = [(name, key) for name, (_, _, _, keys) in FORMATS.items() for key in keys]


def checking_of(content):
    """Give each module of a file a target."""
    return {name: [TARGET[each["prober"]]] for name, each in content.get("modules", {}).items()}


def with_key(content, place, key, value):
    """Set a key, which stands with dots for the tables that it is in."""
    changed = deepcopy(content)
    table = changed
    for part in place:
        table = table[part]
    *within, last = key.split(".")
    for part in within:
        table = table.setdefault(part, {})
    table.pop("urls" if last == "hosts" else last, None)
    table[last] = value
    return changed


def brought_with(name, key, folder):
    """Import the file of a format with and without a key."""
    monitor, content, place, keys = FORMATS[name]
    before = bring(monitor, content, folder, targets=checking_of(content))
    changed = with_key(content, place, key, keys[key][0])
    return before, bring(monitor, changed, folder, targets=checking_of(content))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_without_any_of_them_loses_nothing(name, tmp_path):
    """Or else what is told of a key could be told of something else."""
    monitor, content, _, _ = FORMATS[name]
    found = bring(monitor, content, tmp_path, targets=checking_of(content))
    assert len(found.checks) == 1
    assert [each for each in found.left if "signals come in" not in each and ": set " not in each] == []


@pytest.mark.parametrize(("name", "key"), CASES)
def test_a_documented_key_is_carried_over_or_told(name, key, tmp_path):
    """With its line where it is told, and as the table of keys says where it is carried over."""
    before, after = brought_with(name, key, tmp_path)
    outcome = FORMATS[name][3][key][1]
    if outcome == SILENT:
        assert after.checks == before.checks
        return
    carried, is_told = outcome if isinstance(outcome, tuple) else ((), TOLD) if outcome == TOLD else (outcome, None)
    for option, value in dict(carried).items():
        assert value is ... or after.check.get(option) == value
        assert after.check.get(option) != before.check.get(option)
    new = [each for each in after.left if each not in before.left]
    if is_told:
        lines = after.lines_of(key)
        lines += [number + 1 for number in lines if isinstance(FORMATS[name][3][key][0], list)]  # of its first item
        assert any(f"(line {number}" in each for each in new for number in lines), new


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("key", ["unheard-of", "deep.unheard-of"])
def test_a_key_that_nobody_knows_is_told_with_its_line(name, key, tmp_path):
    """As one of a later version would be."""
    monitor, content, place, _ = FORMATS[name]
    changed = with_key(content, place, key, 7)
    found = bring(monitor, changed, tmp_path, targets=checking_of(content))
    assert found.told(key.partition(".")[0], found.line_of(key.partition(".")[0]))
