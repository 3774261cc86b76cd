"""Every field of every kind of check, with anything that a file may hold in it: a target, or problems, and no more."""

import pytest
from hypothesis import given, settings, strategies as st

from kit import examples
from uptime_agent.checks import COMMON as COMMON_KEYS, KINDS
from uptime_agent.config.target import Common, Target, read_common, read_target
from uptime_agent.testing._rules_of_kinds import SETTINGS, TOML
from uptime_agent.toml import Section

URLS = {
    "http": "http://h.example/",
    "tcp": "tcp://h.example:1",
    "dns": "dns://h.example/www.example.org?type=MX",
    "domain": "domain://example.org",
    "icmp": "icmp://h.example",
    "ntp": "ntp://h.example",
    "postgres": "postgresql://h.example/shop",
    "push": "push://backup",
    "tls": "tls://h.example:443",
}
GOOD = [
    *("any", "all", "exactly", "udp", "tcp", "GET", "public", "now", "phase", "30s", "1m", "7h", "A", "MX", "NXDOMAIN"),
    *("192.0.2.1", "10 mail.example.org.", "https://rdap.example/", "$.a == 1", "a.*b", "* * * * *", "@every 10s"),
    *(1, 2, 3, 10, 200, 4, 6, 1.5, True, False, [200, "300-399"], ["a"], {"Accept": "text/html"}, {"env": "HOME"}),
    *([{"expect": "220 *"}, {"send": "x"}, {"starttls": True}], [{"expect": "a"}], [{}], {"file": "/dev/null"}),
]
COMMON = sorted(COMMON_KEYS - {"url"})  # drawn by itself, or nothing else would be read


def tables(kind):
    """Draw tables of a kind: each key with a value that is right for some key, or with any at all."""
    keys = st.sampled_from([*COMMON, *kind.options])
    values = st.dictionaries(keys, st.sampled_from(GOOD) | TOML, max_size=6)
    host = st.sampled_from(["", "/x", ":7", "?a=b", "/x?type=ANY", "#f", "/\x00"])
    url = st.builds(lambda end: URLS[kind.name] + end, host) if kind.name in URLS else st.just("x")
    needed = {"token": "backup-7f3a9c51d2e8"} if kind.name == "push" else {}
    return st.builds(lambda found, where: {"url": where, **needed, **found}, values, url)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_any_table_is_a_target_or_has_problems(kind):
    """Each of them with a line and words; nothing is raised, and nothing that is wrong goes unsaid."""
    made = []

    @settings(SETTINGS, max_examples=examples(300))
    @given(table=tables(kind))
    def read(table):
        section = Section(table, ("check", 0), "[[check]]", {})
        target = read_target(section, Common(), {})
        assert (target is None) == bool(section.problems)
        assert all(each.text.strip() and each.line >= 1 for each in section.problems)
        if target is not None:
            assert isinstance(target, Target)
            made.append(str(target.check.url))

    read()
    assert made, "nothing that was drawn made a target: this test shows nothing of what is made"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_has_a_url_here(kind):
    """A new one is tested as well."""
    assert kind.name in URLS


@SETTINGS
@given(st.dictionaries(st.sampled_from(COMMON), st.sampled_from(GOOD) | TOML))
def test_any_defaults_are_read_or_have_problems(table):
    """They hold for all kinds."""
    section = Section(table, ("defaults",), "[defaults]", {})
    assert isinstance(read_common(section, Common()), Common)
