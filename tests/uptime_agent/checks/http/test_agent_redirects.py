"""Where redirects lead, where they may not, and whose limits and addresses they take."""

from collections import Counter

import anyio
import pytest

from kit import PATIENCE
from scheduler import Scheduler, Subtask
from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.contract.trouble import CheckFailed
from uptime_agent.checks.http.http_check import SCHEMES
from uptime_agent.checks.http.redirects import OwnHost, RedirectTargets, may_dial, next_url
from uptime_agent.checks.kinds import BY_SCHEME
from uptime_agent.checks.net.resolve import Family
from uptime_agent.text.url import parse_url

NAME = "timerqueue.test"
HOSTS = {NAME: ("127.0.0.1",), "other.test": ("127.0.0.1",)}
ANY = RedirectTargets.ANY


def check(url, **options):
    """Make an HTTP check."""
    parsed = parse_url(url, SCHEMES)
    return BY_SCHEME[parsed.scheme].make(url=parsed, **options)


async def outcome(target_check):
    """Run it to its end, through the subtasks in which it goes on at other hosts."""
    found = await target_check.run()
    while isinstance(found, list):
        (subtask,) = found
        found = await subtask.func(*subtask.args)
    return found


def to(location, status=302):
    """Name the status and the header of a redirect."""
    return {"status": status, "headers": [f"Location: {location}"]}


async def test_redirects_are_followed_as_far_as_allowed(serve, answers, target_check):
    """None by default; each hop to an address of its own; never further than said."""
    end = await serve(answers.respond(200, b"the end"), host="127.0.0.2")
    middle = await serve(answers.respond(**to(f"http://other.test:{end.port}/end")))
    start = await serve(answers.respond(**to(f"http://127.0.0.1:{middle.port}/", 301)))
    hosts = HOSTS | {"other.test": ("127.0.0.2",)}

    async def result_with(**options):
        options["redirect_targets"] = ANY
        result = await outcome(target_check(check(f"http://127.0.0.1:{start.port}", **options), hosts=hosts))
        return result.status, result.detail.get("http_status"), result.error

    assert await result_with() == (Status.UP, 301, None)
    assert await result_with(redirects=2, contains="end") == (Status.UP, 200, None)
    status, _, error = await result_with(redirects=1)
    assert (status, error) == (Status.DOWN, f"redirected to 127.0.0.1:{middle.port}: more than 1 redirect")


async def test_a_redirect_from_http_to_https_is_verified(serve, answers, target_check, tls):
    """The first hop needs no certificates, and the second does not go without."""
    end = await serve(answers.respond(), tls=tls)
    start = await serve(answers.respond(**to(f"https://{NAME}:{end.port}/")))
    target = check(f"http://127.0.0.1:{start.port}", redirects=1, redirect_targets=ANY)
    result = await outcome(target_check(target, hosts=HOSTS))
    assert result.status is Status.DOWN
    assert result.error == f"redirected to {NAME}:{end.port}: certificate of 127.0.0.1:{end.port} is self-signed"


async def test_a_redirected_post_becomes_a_get(serve, answers, target_check):
    """As browsers do it; nothing is posted to where the check was not told to post."""
    end = await serve(answers.respond())
    start = await serve(answers.respond(**to(f"http://127.0.0.1:{end.port}/")))
    await outcome(target_check(check(f"http://127.0.0.1:{start.port}", method="POST", redirects=1)))
    assert (start.requests[0].split()[0], end.requests[0].split()[0]) == ("POST", "GET")
    assert "content-length: 0" in start.requests[0].lower()


async def test_credentials_stay_with_their_origin(serve, answers, target_check):
    """A redirect to somewhere else takes no password and no header along, and brings none of its own."""
    end = await serve(answers.respond())
    start = await serve(answers.respond(**to(f"http://you:hunter23@127.0.0.1:{end.port}/")))
    url = f"http://me:hunter22@127.0.0.1:{start.port}"
    await outcome(target_check(check(url, redirects=1, headers={"X-Token": "t"})))
    assert "authorization" in start.requests[0].lower()
    assert "authorization" not in end.requests[0].lower()
    assert "x-token" not in end.requests[0].lower()


async def test_credentials_go_on_to_another_page_of_their_origin(serve, answers, target_check):
    """It is the same server that asked for them."""

    async def login(server, stream):
        answer = to("/b") if not server.requests else {}
        await answers.respond(**answer)(server, stream)

    server = await serve(login)
    url = f"http://me:hunter22@127.0.0.1:{server.port}/a"
    result = await outcome(target_check(check(url, redirects=1, headers={"X-Token": "t"})))
    assert (result.status, result.error) == (Status.UP, None)
    assert [request.split()[1] for request in server.requests] == ["/a", "/b"]
    assert all("authorization" in request.lower() and "x-token" in request.lower() for request in server.requests)


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("http://127.0.0.1:1/", "redirects from https to http"),
        ("file:///etc/passwd", "redirects to something that is not an http:// or https:// URL"),
    ],
)
async def test_a_redirect_that_leads_astray_is_not_followed(
    serve, answers, target_check, tls, certificate, location, error
):
    """Neither to an unprotected connection nor to anything but HTTP."""
    server = await serve(answers.respond(**to(location)), tls=tls)
    target = check(f"https://{NAME}:{server.port}", redirects=3, ca_file=str(certificate[0]))
    result = await outcome(target_check(target, hosts=HOSTS))
    assert (result.status, result.error) == (Status.DOWN, error)


BROKEN = [
    b"http://[",
    b"http://a]b/",
    b"http://h:99999/",
    b"http://h:x/",
    b"//",
    b"http://",
    b"\xff\xfe://h",
]
BROKEN += [b"http://h/\x01", b"javascript:1", b"http://" + b"a" * 300 + b"/", b"http://h\xe2\x84\x80/", b"x" * 9_000]


@pytest.mark.parametrize("location", BROKEN)
def test_a_location_that_makes_no_sense_is_the_targets_fault(location):
    """Whatever it is, it is told in words, and is no defect of the check."""
    base = parse_url("ftp://h:21/", {"ftp": 21})
    with pytest.raises(CheckFailed, match=r"redirects to (something that is not|a URL of 9,000 characters)"):
        next_url(base, location, SCHEMES)


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        (b"/b", "http://h:81/b"),
        (b"b?q=1#top", "http://h:81/a/b?q=1"),
        (b"//g/", "http://g"),
        (b" https://g/x y ", "https://g/x%20y"),
        ("/ü".encode(), "http://h:81/%C3%BC"),
        ("/ü".encode("latin-1"), "http://h:81/%C3%BC"),
        (b"http://you:hunter23@g:8080/", "http://g:8080"),
    ],
)
def test_a_location_is_read_as_browsers_read_it(location, leads_to):
    """Relative or whole, in UTF-8 or not, with blanks; a fragment and credentials are left behind."""
    assert str(next_url(parse_url("http://h:81/a/", SCHEMES), location, SCHEMES)) == leads_to


@pytest.mark.parametrize(
    ("targets", "origin", "host", "address", "allowed"),
    [
        (RedirectTargets.PUBLIC, "1.1.1.1", "other", "1.1.1.2", True),
        (RedirectTargets.PUBLIC, "1.1.1.1", "other", "10.0.0.1", False),
        (
            RedirectTargets.PUBLIC,
            "1.1.1.1",
            "origin",
            "10.0.0.1",
            False,
        ),  # the name was given another address meanwhile
        (RedirectTargets.PUBLIC, "10.0.0.1", "origin", "10.0.0.2", True),  # a private target leads to itself
        (RedirectTargets.PUBLIC, "10.0.0.1", "other", "10.0.0.1", False),
        (RedirectTargets.SAME_HOST, "1.1.1.1", "origin", "10.0.0.1", False),
        (RedirectTargets.SAME_HOST, "10.0.0.1", "origin", "10.0.0.1", True),
        (RedirectTargets.ANY, "1.1.1.1", "other", "127.0.0.1", True),
    ],
)
def test_what_counts_is_the_address_that_is_dialled(targets, origin, host, address, allowed):
    """Not the name, whose owner decides where it leads."""
    assert may_dial(targets, OwnHost("origin", origin), host, address) is allowed


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        (
            RedirectTargets.PUBLIC,
            'redirects to other.test:{port} (127.0.0.1), which redirect_targets = "public" does not allow',
        ),
        (
            RedirectTargets.SAME_HOST,
            'redirects to other.test:{port} (other.test), which redirect_targets = "same-host" does not allow',
        ),
        (RedirectTargets.ANY, None),
    ],
)
async def test_a_redirect_into_our_own_network_is_refused_unless_allowed(serve, answers, target_check, targets, error):
    """Nobody there is asked, and the error says which key decides that."""
    end = await serve(answers.respond())
    start = await serve(answers.respond(**to(f"http://other.test:{end.port}/")))
    target = check(f"http://{NAME}:{start.port}", redirects=1, redirect_targets=targets)
    result = await outcome(target_check(target, hosts=HOSTS))
    assert result.error == (error and error.format(port=end.port).replace(" (other.test)", ""))
    assert (result.status, end.connections) == ((Status.UP, 1) if error is None else (Status.DOWN, 0))


async def test_all_addresses_of_a_hop_are_tried(serve, answers, target_check):
    """As they are of the target itself: one that refuses costs nothing but a moment."""
    end = await serve(answers.respond(), host="127.0.0.3")
    start = await serve(answers.respond(**to(f"http://other.test:{end.port}/")))
    hosts = {"other.test": ("127.0.0.1", "127.0.0.2", "127.0.0.3")}
    target = check(f"http://127.0.0.1:{start.port}", redirects=1, redirect_targets=ANY)
    result = await outcome(target_check(target, hosts=hosts))
    assert (result.status, result.error, result.address) == (Status.UP, None, "127.0.0.1")


async def test_the_family_holds_for_hops(serve, answers, target_check):
    """A name with addresses of the other family alone is not there."""
    start = await serve(answers.respond(**to("http://other.test:1/")))
    target = check(f"http://127.0.0.1:{start.port}", redirects=1, redirect_targets=ANY)
    result = await outcome(target_check(target, hosts={"other.test": ("::1",)}, family=Family.V4))
    assert result.error == "redirected to other.test:1: other.test has no IPv4 address, only ::1"


async def test_the_error_names_the_peer_that_failed(serve, answers, target_check, free_port):
    """It is not the one that was asked first."""
    start = await serve(answers.respond(**to(f"http://other.test:{free_port}/")))
    target = check(f"http://127.0.0.1:{start.port}", redirects=1, redirect_targets=ANY)
    result = await outcome(target_check(target, hosts={"other.test": ("127.0.0.2",)}))
    assert result.error == f"redirected to other.test:{free_port}: connection refused by 127.0.0.2:{free_port}"


async def test_a_hop_has_what_is_left_of_the_time(serve, answers, target_check):
    """The timeout is for the whole attempt."""
    end = await serve(answers.silent)
    start = await serve(answers.respond(**to(f"http://other.test:{end.port}/")))
    target = check(f"http://127.0.0.1:{start.port}", redirects=1, redirect_targets=ANY)
    result = await outcome(target_check(target, hosts=HOSTS, timeout=0.2))
    peer = f"127.0.0.1:{end.port}"
    assert result.error == f"redirected to other.test:{end.port}: no answer from {peer} within 0.2 s (first byte)"


async def test_a_hop_takes_a_unit_of_the_host_that_it_leads_to(serve, answers, target_check):
    """And has given back that of the host that it comes from: two that lead to each other never wait so."""
    begun = anyio.Event()

    async def slow(server, stream):
        if server.connections == 2:
            begun.set()
        with anyio.move_on_after(0.05):
            await begun.wait()
        await answers.respond()(server, stream)

    end = await serve(slow)
    first = await serve(answers.respond(**to(f"http://b.test:{end.port}/")))
    second = await serve(answers.respond(**to(f"http://a.test:{end.port}/")))
    hosts = dict.fromkeys(("a.test", "b.test"), ("127.0.0.1",))
    scheduler = Scheduler(limits={"host:*": 1})
    targets = {f"a{number}": f"http://a.test:{first.port}" for number in range(3)}
    targets |= {f"b{number}": f"http://b.test:{second.port}" for number in range(3)}
    for name, url in targets.items():
        made = target_check(
            check(url, redirects=1, redirect_targets=ANY),
            hosts=hosts,
            needs=("host:" + url[7:13],),
            needs_at=lambda host: ("host:" + host,),
        )
        scheduler.add(made.run, "@every 1h", id=name, needs=made.needs)
    with anyio.fail_after(PATIENCE):
        ended = await scheduler.run_once()
    statuses = Counter(result.status for run in ended.values() for result in run.results)
    assert statuses == {Status.UP: 6}
    assert (first.most_open, second.most_open) == (1, 1)
    assert end.most_open <= 2


async def test_the_next_attempt_begins_at_the_target_again(serve, answers, target_check, free_port):
    """With its own units, wherever the one before ended."""
    start = await serve(answers.respond(**to(f"http://other.test:{free_port}/")))
    made = target_check(
        check(f"http://127.0.0.1:{start.port}", redirects=1, redirect_targets=ANY),
        hosts=HOSTS,
        attempts=lambda: 2,
        needs=("host:127.0.0.1",),
        needs_at=lambda host: ("host:" + host,),
    )
    needs, found = [], await made.run()
    while isinstance(found, list):
        assert all(isinstance(each, Subtask) for each in found)
        needs += [dict(found[0].needs)]
        found = await found[0].func(*found[0].args)
    assert needs == [{"host:other.test": 1}, {"host:127.0.0.1": 1}, {"host:other.test": 1}]
    assert (found.status, found.attempt, start.connections) == (Status.DOWN, 2, 2)
