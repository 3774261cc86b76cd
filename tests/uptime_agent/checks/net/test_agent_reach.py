"""Which addresses may be dialled: in every notation, by every kind of check, on every hop."""

import socket

import pytest

from uptime_agent.checks import BY_SCHEME, Resolver
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.net import ANYWHERE, PUBLIC, is_public, reach
from uptime_agent.checks.net.lookups import SystemLookup
from uptime_agent.checks.net.resolve import Unresolved
from uptime_agent.text.url import parse_url
from uptime_agent.toml.readers import Unfit

PRIVATE = """
    127.0.0.1 127.255.255.254 10.1.2.3 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 100.127.255.255
    0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.250 255.255.255.255 240.0.0.1 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1
    192.88.99.0 192.88.99.1 192.88.99.255 ::ffff:192.88.99.1 2002:c058:6301::
    ::1 :: fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 ff02::1 fec0::1 2001:db8::1
    ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:10.0.0.1 ::127.0.0.1 ::a9fe:a9fe
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::101:101 64:ff9b:1:ffff::7f00:1
    2002:7f00:1:: 2002:a9fe:a9fe::1 2001:0:4136:e378:8000:63bf:5601:5601
    2606:4700::5efe:7f00:1 2606:4700::200:5efe:a00:1
    nonsense 0x7f.1 127.1 2130706433 017700000001 0177.0.0.1 127.0.0.1.
""".split()

INTERNET = "1.1.1.1 93.184.216.34 2606:4700::1111 64:ff9b::101:101 ::ffff:1.1.1.1 2002:101:101::1".split()


@pytest.mark.parametrize("address", [*PRIVATE, ""])
def test_what_is_no_address_of_the_internet_is_not_public(address):
    """However it is written, and whatever it is wrapped in."""
    assert not is_public(address)
    assert not PUBLIC.permits("name.test", address)
    assert ANYWHERE.permits("name.test", address)


@pytest.mark.parametrize("address", INTERNET)
def test_the_others_are(address):
    """They may be dialled."""
    assert is_public(address)
    assert PUBLIC.permits("name.test", address)


LIST = ["10.0.0.0/8", "192.0.2.7", "fd00::/8", "db.internal", "*.example.org"]


@pytest.mark.parametrize(
    ("host", "address", "permitted"),
    [
        ("a.test", "10.1.2.3", True),
        ("a.test", "11.1.2.3", False),
        ("a.test", "192.0.2.7", True),
        ("a.test", "192.0.2.8", False),
        ("a.test", "fd12::1", True),
        ("a.test", "::ffff:10.1.2.3", True),
        ("a.test", "64:ff9b::a01:203", True),
        ("a.test", "::ffff:127.0.0.1", False),
        ("a.test", "1.1.1.1", False),
        ("db.internal", "127.0.0.1", True),
        ("x.db.internal", "127.0.0.1", False),
        ("www.example.org", "127.0.0.1", True),
        ("example.org", "127.0.0.1", False),
        ("badexample.org", "127.0.0.1", False),
        ("a.test", "nonsense", False),
    ],
)
def test_a_list_permits_what_it_names(host, address, permitted):
    """Networks by the address that is reached in the end, names at whatever address they have."""
    assert reach(LIST).permits(host, address) is permitted


def test_a_list_may_have_the_internet_in_it():
    """Beside some networks of ours."""
    both = reach(["public", "10.0.0.0/8"])
    assert [both.permits("h", each) for each in ("1.1.1.1", "10.0.0.1", "127.0.0.1")] == [True, True, False]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("private", 'expected "any", "public", or a list such as'),
        ([], 'expected "any", "public", or a list such as'),
        (["any"], 'expected "any", "public", or a list such as'),
        ([5], 'expected "any", "public", or a list such as'),
        (True, 'expected "any", "public", or a list such as'),
        (["10.0.0.1/8"], 'expected a network such as "10.0.0.0/8" (10.0.0.1/8 has host bits set)'),
        (["10.0.0.0/33"], 'expected a network such as "10.0.0.0/8"'),
        (["10.0.0"], 'expected a network such as "10.0.0.0/8"'),
        (["a.*.org"], 'expected a name, or all below one, as in "*.example.org"'),
        (["a..b"], "expected a host name"),
    ],
)
def test_other_lists_are_refused(value, message):
    """With what was expected."""
    with pytest.raises(Unfit) as caught:
        reach(value)
    assert message in str(caught.value)


class Flipping:
    """A lookup whose answers are given one after another, as who owns a name may give them."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def __call__(self, host):
        return self.answers.pop(0)


async def test_only_permitted_addresses_of_a_name_are_given_out():
    """And if there is none, the error names one and says what forbids it."""
    resolver = Resolver({}, Flipping(["127.0.0.1", "1.1.1.1", "::1"], ["10.0.0.1"]), PUBLIC)
    assert await resolver.addresses("name.test") == ["1.1.1.1"]
    with pytest.raises(Unresolved) as caught:
        await resolver.addresses("name.test")
    assert caught.value.status is Status.DOWN
    assert str(caught.value) == 'name.test (10.0.0.1) is not asked: "targets" in the configuration does not allow it'


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fixed.test"])
async def test_what_needs_no_lookup_is_judged_as_well(host):
    """Addresses, and what [hosts] say."""
    resolver = Resolver({"fixed.test": ("127.0.0.1",)}, Flipping(), PUBLIC)
    with pytest.raises(Unresolved, match="is not asked"):
        await resolver.addresses(host)
    with pytest.raises(Unresolved, match="is not asked"):
        resolver.known(host)


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.1", "127.0.0.1."]
)
async def test_other_notations_of_an_address_are_judged_by_what_the_system_makes_of_them(
    host, serve, answers, target_check
):
    """The C library reads them as 127.0.0.1: nobody there is asked."""
    server = await serve(answers.respond())
    url = parse_url(f"http://{host}:{server.port}/", {"http": 80})
    made = target_check(BY_SCHEME["http"].make(url=url), resolver=Resolver({}, SystemLookup(), PUBLIC))
    result = await made.run()
    assert (result.status, server.connections) == (Status.DOWN, 0)
    assert "127.0.0.1" in result.error
    assert 'is not asked: "targets"' in result.error


def options_of(scheme):
    return {"dns": "/example.org?type=A", "http": "/", "https": "/"}.get(scheme, "")


@pytest.mark.parametrize("scheme", sorted(scheme for scheme, kind in BY_SCHEME.items() if kind.is_resolved))
async def test_every_kind_of_check_is_asked(scheme, serve, answers, target_check):
    """None has a way of its own to an address."""
    server = await serve(answers.respond())
    kind = BY_SCHEME[scheme]
    port = "" if kind.schemes[scheme] == 0 else f":{server.port}"
    url = parse_url(f"{scheme}://name.test{port}{options_of(scheme)}", {scheme: kind.schemes[scheme]})
    hosts = {"name.test": ("127.0.0.1",)}
    made = target_check(kind.make(url=url), resolver=Resolver(hosts, None, PUBLIC))
    result = await made.run()
    assert (result.status, server.connections) == (Status.DOWN, 0)
    assert result.error == 'name.test (127.0.0.1) is not asked: "targets" in the configuration does not allow it'


async def test_a_hop_is_judged_although_redirects_may_lead_anywhere(serve, answers, target_check):
    """`redirect_targets` narrows what `targets` permits, and widens nothing."""
    end = await serve(answers.respond())
    start = await serve(answers.respond(302, headers=[f"Location: http://other.test:{end.port}/"]))
    kind = BY_SCHEME["http"]
    options = {"redirects": 1, "redirect_targets": kind.options["redirect_targets"]("any")}
    made = kind.make(url=parse_url(f"http://name.test:{start.port}/", {"http": 80}), **options)
    hosts = {"name.test": ("127.0.0.1",), "other.test": ("127.0.0.1",)}
    check = target_check(made, resolver=Resolver(hosts, None, reach(["name.test"])))
    (subtask,) = await check.run()
    result = await subtask.func(*subtask.args)
    assert (result.status, start.connections, end.connections) == (Status.DOWN, 1, 0)
    assert result.error == (
        f"redirected to other.test:{end.port}: other.test (127.0.0.1) is not asked:"
        ' "targets" in the configuration does not allow it'
    )


async def test_a_name_that_is_rebound_leads_nowhere(serve, answers, target_check):
    """It was within reach when it was judged first; the next lookup is judged again."""
    server = await serve(answers.respond(302, headers=["Location: /again"]))
    kind = BY_SCHEME["http"]
    made = kind.make(url=parse_url(f"http://name.test:{server.port}/", {"http": 80}), redirects=1)
    lookup = Flipping(["127.0.0.2", "127.0.0.1"], ["169.254.169.254"])
    check = target_check(made, resolver=Resolver({}, lookup, reach(["127.0.0.1"])))
    result = await check.run()
    assert (result.status, server.connections) == (Status.DOWN, 1)
    assert "name.test (169.254.169.254) is not asked" in result.error


def test_the_system_reads_other_notations():
    """What the tests above rest on."""
    assert {each[4][0] for each in socket.getaddrinfo("2130706433", None)} == {"127.0.0.1"}
