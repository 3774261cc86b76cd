"""domain:// checks against registries of our own: what they say, how seldom they are asked, whose trouble is whose."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from scheduler import Scheduler
from timerqueue.testing import ManualClock
from uptime_agent.checks import CheckFailed, Clash, Finding, Resolver, Status, reach
from uptime_agent.checks.domain import DOMAIN, domain_check
from uptime_agent.checks.domain.registration import registration, registries, registry_of
from uptime_agent.config.config import parse_config
from uptime_agent.testing import KindConformance
from uptime_agent.text import parse_url
from uptime_agent.toml import ConfigError

NAME = "example.org"
DAY = 86_400
ENDS = b'{"ldhName": "example.org", "events": [{"eventAction": "expiration", "eventDate": "%s"}]}'


def stamp(seconds):
    """Write an instant as registries do."""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


class Registry:
    """A registry and its list, which answer as they are told, and count who asks."""

    def __init__(self):
        self.paths = []
        self.answers = {}

    async def serve(self, server, stream):
        """Answer one request."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += await stream.receive()
        path = received.split()[1].decode()
        self.paths.append(path)
        status, fields, body = self.answers.get(path, (404, {}, b""))
        lines = [f"HTTP/1.1 {status} Any", f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in fields.items())]
        await stream.send("\r\n".join([*lines, "", ""]).encode() + body)

    def lists(self, **bases):
        """Let the list name registries."""
        services = [[[name], [base]] for name, base in bases.items()]
        self.answers["/dns.json"] = (200, {}, json.dumps({"services": services}).encode())

    def says(self, expires, *, name=NAME, status=(), path="/rdap/domain/example.org"):
        """Let the registry tell an end."""
        found = {"ldhName": name, "status": list(status), "events": [{"eventAction": "registration"}]}
        if expires is not None:
            found["events"].append({"eventAction": "expiration", "eventDate": expires})
        self.answers[path] = (200, {"Content-Type": "application/rdap+json"}, json.dumps(found).encode())


@pytest.fixture
def registry():
    """Make a registry."""
    return Registry()


@pytest.fixture(autouse=True)
def _no_list_is_known(monkeypatch):
    monkeypatch.setattr(domain_check, "_known", {})


@pytest.fixture
def asked(serve, registry, target_check):
    """Ask about example.org, as the agent does: the result, whichever hosts it leads to."""
    server = None

    async def ask(*, before=None, uses_list=False, clock=None, **options):
        nonlocal server
        server = await serve(registry.serve) if server is None else server
        base = f"http://127.0.0.1:{server.port}"
        where = {"bootstrap": f"{base}/dns.json"} if uses_list else {"server": f"{base}/rdap/"}
        read = {key: DOMAIN.options[key](value) for key, value in {**where, **options}.items()}
        check = DOMAIN.make(url=parse_url(f"domain://{NAME}", DOMAIN.schemes), **read)
        changes = {} if clock is None else {"clock": clock}
        found = target_check(check, is_resolved=False, before=lambda: before or {}, **changes)
        scheduler = Scheduler()
        scheduler.add(found.run, "@every 1h", id="domain")
        (result,) = (await scheduler.run_once())["domain"].results
        return result

    ask.base = lambda: f"http://127.0.0.1:{server.port}"
    return ask


class TestDomain(KindConformance):
    """domain://, whose servers are below."""

    @pytest.fixture
    def kind(self):
        return DOMAIN

    @pytest.fixture
    def examples(self, certificate):
        return [
            {"expires_within": "60d", "down_within": "30d", "server": "https://rdap.example/"},
            {
                "bootstrap": "https://rdap.example/dns.json",
                "redirect_targets": "any",
                "ca_file": str(certificate[0]),
            },
        ]


@pytest.mark.parametrize(
    ("days", "options", "status", "error"),
    [
        (400, {}, Status.UP, None),
        (13.5, {}, Status.DEGRADED, "its registration ends in 13 days, on "),
        (29.5, {"expires_within": "31d", "down_within": "30d"}, Status.DOWN, "its registration ends in 29 days, on "),
        (29.5, {"expires_within": "30d"}, Status.DEGRADED, "its registration ends in 29 days, on "),
        (1.5, {"expires_within": "1d"}, Status.UP, None),
        (-2, {}, Status.DOWN, "its registration ended on "),
    ],
)
async def test_a_domain_is_judged_by_the_end_of_its_registration(asked, registry, days, options, status, error):
    """With the day on which it does, and the seconds until then as plain numbers."""
    clock = ManualClock()
    registry.says(stamp(clock.wall() + days * DAY))
    result = await asked(clock=clock, **options)
    assert result.status is status
    assert (result.error or "").startswith(error or "")
    assert (result.error is None) is (error is None)
    assert result.detail["domain_expires_in"] == pytest.approx(days * DAY, abs=1)
    assert result.detail["rdap_asked"] == clock.wall()
    assert registry.paths == ["/rdap/domain/example.org"]


async def test_a_domain_in_its_last_days_is_down_whatever_its_date(asked, registry):
    """A registry adds a year to the date of a domain that it is about to delete."""
    registry.says("2099-01-01T00:00:00Z", status=["client hold", "redemption period"])
    result = await asked()
    assert (result.status, result.error) == (Status.DOWN, "its registration is ending: redemption period")


async def test_a_domain_that_nobody_has_is_down(asked, registry):
    """The registry says so itself."""
    result = await asked()
    assert (result.status, result.error) == (Status.DOWN, "example.org is not registered")


async def test_the_list_names_the_registry(asked, registry):
    """It is read once a day, however many domains are checked."""
    registry.says("2099-01-01T00:00:00Z")
    registry.lists(com="http://127.0.0.1:1/", org="BASE")
    await asked()  # so that there is a server
    registry.paths.clear()
    registry.lists(com="http://127.0.0.1:1/", org=f"{asked.base()}/rdap/")
    for _ in range(2):
        assert (await asked(uses_list=True, redirect_targets="any")).status is Status.UP
    assert registry.paths == ["/dns.json", "/rdap/domain/example.org", "/rdap/domain/example.org"]


async def test_a_list_leads_to_no_private_address(asked, registry):
    """Somebody else writes it: it must not make the agent ask this machine."""
    await asked()
    registry.paths.clear()
    registry.lists(org=f"{asked.base()}/rdap/")
    result = await asked(uses_list=True)
    assert result.status is Status.UNKNOWN
    where = f"127.0.0.1:{asked.base().rpartition(':')[2]}"
    assert result.error == f'is told to ask at {where}, which redirect_targets = "public" does not allow'
    assert registry.paths == ["/dns.json"]


async def test_a_top_level_domain_without_rdap_is_unknown(asked, registry):
    """Nobody can be asked."""
    registry.lists(com="http://127.0.0.1:1/")
    result = await asked(uses_list=True)
    assert (result.status, result.error) == (Status.UNKNOWN, "no registry of .org is known to answer over RDAP")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((429, {}, b""), "asks us to ask less often: status 429"),
        ((503, {}, b""), "cannot answer: status 503"),
        ((200, {}, b"<html>"), "its answer makes no sense as RDAP"),
        ((200, {}, b"[" * 100_000), "its answer makes no sense as RDAP"),
        ((200, {}, b"x" * 300_000), "its answer is longer than 262,144 bytes"),
        ((200, {}, b'{"ldhName": "evil.org"}'), "it answers for another domain, evil.org"),
        ((200, {}, ENDS % b"0001-01-01T00:00:00+14:00"), "its answer makes no sense as RDAP"),
        ((200, {}, ENDS % b"9999-12-31T23:59:59-14:00"), "its answer makes no sense as RDAP"),
        ((200, {}, b'{"ldhName": "example.org"}'), "its registry does not tell when its registration ends"),
        ((302, {"Location": "/rdap/domain/example.org"}, b""), "more than 3 redirects"),
        ((302, {"Location": "ftp://h/"}, b""), "redirects to something that is not an http:// or https:// URL"),
    ],
)
async def test_the_trouble_of_a_registry_is_not_that_of_the_domain(asked, registry, answer, error):
    """It is unknown, and somebody is named."""
    registry.answers["/rdap/domain/example.org"] = answer
    result = await asked()
    assert result.status is Status.UNKNOWN
    assert error in result.error


async def test_a_registry_that_refuses_connections_leaves_it_unknown(asked, registry, free_port):
    """No alarm for a domain because its registry is down."""
    result = await asked(server=f"http://127.0.0.1:{free_port}/")
    assert result.status is Status.UNKNOWN
    assert result.error == f"cannot ask 127.0.0.1:{free_port}: connection refused by 127.0.0.1:{free_port}"


async def test_a_registry_that_may_not_be_asked_leaves_it_unknown(asked, registry, target_check):
    """As `targets` of the configuration says: it holds for who is asked about a target, too."""
    check = DOMAIN.make(url=parse_url(f"domain://{NAME}", DOMAIN.schemes), server="http://127.0.0.1:1/")
    found = target_check(check, is_resolved=False, resolver=Resolver(reach=reach("public")))
    scheduler = Scheduler()
    scheduler.add(found.run, "@every 1h", id="domain")
    (result,) = (await scheduler.run_once())["domain"].results
    assert result.status is Status.UNKNOWN
    assert result.error.startswith("cannot ask 127.0.0.1:1: 127.0.0.1 is not asked")


async def test_many_domains_of_one_registry_wait_for_its_limit(serve, registry, target_check):
    """It is a host as any other: no more of them ask it at a time than it may have."""
    server = await serve(registry.serve)
    names = [f"example{number}.org" for number in range(5)]
    scheduler = Scheduler(limits={"domain": 5, "host:127.0.0.1": 1})
    for name in names:
        registry.says("2099-01-01T00:00:00Z", name=name, path=f"/domain/{name}")
        url = parse_url(f"domain://{name}", DOMAIN.schemes)
        check = DOMAIN.make(url=url, server=f"http://127.0.0.1:{server.port}/")
        found = target_check(
            check, is_resolved=False, needs=("domain",), needs_at=lambda host: ("domain", f"host:{host}")
        )
        scheduler.add(found.run, "@every 1h", id=name, needs=found.needs)
    ended = await scheduler.run_once()
    assert [each.status for name in names for each in ended[name].results] == [Status.UP] * 5
    assert (server.connections, server.most_open) == (5, 1)


async def test_a_redirect_of_the_registry_is_followed(asked, registry):
    """To the same host, or a public one."""
    registry.answers["/rdap/domain/example.org"] = (301, {"Location": "/v2/example.org"}, b"")
    registry.says("2099-01-01T00:00:00Z", path="/v2/example.org")
    assert (await asked()).status is Status.UP
    assert registry.paths == ["/rdap/domain/example.org", "/v2/example.org"]


async def test_what_a_registry_said_is_kept_for_six_hours(asked, registry):
    """Also over a restart, for it stands in history; and the days count down meanwhile."""
    clock = ManualClock()
    registry.says(stamp(clock.wall() + 20 * DAY))
    first = await asked(clock=clock)
    ago = {**first.detail, "rdap_asked": clock.wall() - 5 * 3600}
    again = await asked(clock=clock, before=ago, expires_within="21d")
    assert (again.status, again.detail["rdap_asked"]) == (Status.DEGRADED, ago["rdap_asked"])
    assert len(registry.paths) == 1
    old = {**first.detail, "rdap_asked": clock.wall() - 6 * 3600}
    assert (await asked(clock=clock, before=old)).status is Status.UP
    assert len(registry.paths) == 2


async def test_a_restart_asks_no_registry_again(serve, registry, ran, tmp_path):
    """The answer stands in the store: of three agents, one after another, the first has asked."""
    server = await serve(registry.serve)
    registry.says("2099-01-01T00:00:00Z")
    file = tmp_path / "uptime.toml"
    file.write_text(f'{FILE}server = "http://127.0.0.1:{server.port}/rdap"\n')
    for _ in range(3):
        code, out, err = await ran("run", "--once", "--json", "--store", f"sqlite:///{tmp_path}/u.db", str(file))
        assert (code, '"status": "up"' in out) == (0, True), out + err
        assert '"domain_expires": 4070908800' in out
    assert registry.paths == ["/rdap/domain/example.org"]


@given(
    st.dictionaries(
        st.sampled_from(["rdap_asked", "domain_expires", "domain_status"]),
        st.one_of(st.none(), st.text(), st.floats(), st.integers(), st.booleans(), st.lists(st.integers())),
    ),
    st.floats(0, 2e9),
)
def test_a_history_that_others_have_written_does_no_harm(before, now):
    """Its numbers may be anything."""
    kept = domain_check._kept(before, now)
    if kept is not None:
        check = DOMAIN.make(url=parse_url(f"domain://{NAME}", DOMAIN.schemes))
        assert isinstance(check.judged(kept, now, now), Finding)


VALUES = st.recursive(
    st.one_of(st.none(), st.text(max_size=5), st.integers(), st.floats(), st.just("expiration"), st.just(NAME)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ldhName", "events", "eventAction", "eventDate", "status"]), inner)
    ),
)


@given(VALUES | st.fixed_dictionaries({"ldhName": st.just(NAME), "events": VALUES, "status": VALUES}))
def test_any_answer_is_a_registration_or_a_failed_check(value):
    """Nothing else is raised, whatever a registry sends."""
    try:
        found = registration(json.dumps(value).encode(), NAME)
    except CheckFailed:
        found = None
    assert found is None or isinstance(found.expires, float)


@given(st.binary(max_size=50) | VALUES.map(lambda each: json.dumps({"services": each}).encode()))
def test_any_list_is_one_or_a_failed_check(content):
    """And what is one leads from names to texts."""
    try:
        found = registries(content)
    except CheckFailed:
        found = {}
    assert all(isinstance(text, str) for pair in found.items() for text in pair)


def test_the_longest_name_in_a_list_counts():
    """A registry of co.uk comes before that of uk, and names end at dots."""
    known = {"uk": "a", "co.uk": "b", "k": "c"}
    assert [registry_of(name, known) for name in ("x.co.uk", "x.uk", "co.uk", "x.suk")] == ["b", "a", "b", None]
    listed = b'{"services": [[["UK"], ["http://a/", "https://b/"]]]}'
    assert registries(listed) == {"uk": "https://b/"}


@pytest.mark.parametrize(
    ("url", "options", "key"),
    [
        ("domain://example.org/x", {}, "url"),
        ("domain://me:hunter22@example.org", {}, "url"),
        ("domain://org", {}, "url"),
        ("domain://127.0.0.1", {}, "url"),
        ("domain://example.org", {"down_within": 14 * DAY}, "down_within"),
    ],
)
def test_what_does_not_fit_together_clashes(url, options, key):
    """With the key that has to change."""
    with pytest.raises(Clash) as caught:
        DOMAIN.make(url=parse_url(url, DOMAIN.schemes), **options)
    assert caught.value.key == key


FILE = '[[check]]\nname = "ours"\nurl = "domain://example.org"\n'


def test_a_file_asks_no_registry_more_often_than_every_six_hours():
    """Whatever [defaults] say; and a check that says so itself is told."""
    head = '[defaults]\ninterval = "10s"\nmax_attempts = 3\nfailing_interval = "5s"\nmode = "all"\n'
    (target,) = parse_config(head + FILE, "f", {}).targets
    assert str(target.schedule) == "@every 6h"
    assert (target.max_attempts, target.failing_interval, target.needs) == (1, None, ("domain",))
    for line in ('interval = "5h"', "max_attempts = 2", 'retry_interval = "1m"', 'failing_interval = "1h"'):
        with pytest.raises(ConfigError, match=r"a domain check runs every 6 h at most"):
            parse_config(FILE + line, "f", {})
    (target,) = parse_config(FILE + 'interval = "1d"', "f", {}).targets
    assert str(target.schedule) == "@every 1d"
