"""examples/uptime.toml against examples/servers.py: whatever breaks there is told as what it is, and so is its end.

One agent and one process of servers for all tests: each round breaks what it can in its next way, by the commands that
a reader types, waits until the agent has told of all, and mends. The agent's file is the example with other ports, and
with shorter intervals, so that nobody waits.
"""

import os
import subprocess
import sys
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit import PATIENCE, wait_until
from programs import AGENT, Program, events_of, played_once

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # who asks for the play may wait for another worker's

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SOONER = {'interval = "2s"': 'interval = "400ms"', "*/2 * * * * *": "* * * * * *", "above = 20": "above = 200"}
"""What is other than in the example, so that nobody waits, and each message comes by itself."""

FAULTS = {
    ("website", "503"): ("down", "status 503, expected 200-399"),
    ("website", "wrong"): ("down", '"all is well" is not in the body'),
    ("website", "flaps"): ("down", "status 503, expected 200-399"),
    ("website", "refused"): ("down", "connection refused by 127.0.0.1"),
    ("gateway", "refused"): ("down", "connection refused by 127.0.0.1"),
    ("shop", "empty"): ("down", "there is no $.items[0].id in its JSON"),
    ("search", "slow"): ("degraded", "more than 300 ms"),
    ("reports", "stuck"): ("down", "within 1 s"),
    ("order", "login"): ("down", "step login: status 403"),
    ("order", "basket"): ("down", "step basket: status 401"),
    ("certificate", "expired"): ("down", "has expired"),
    ("certificate", "plain"): ("down", "it does not speak TLS there"),
    ("mail", "banner"): ("down", "554 mail.example takes no mail today"),
    ("mail", "plain"): ("down", "502 no TLS here"),
    ("cache", "loading"): ("down", 'without "+PONG"'),
    ("cache", "refused"): ("down", "connection refused by 127.0.0.1"),
    ("names", "wrong"): ("down", "answers 192.0.2.66, without 192.0.2.7"),
    ("names", "gone"): ("down", "answers NXDOMAIN"),
    ("names", "silent"): ("down", "no answer from 127.0.0.1"),
    ("clock", "wrong"): ("down", " s ahead of ours"),
    ("clock", "lost"): ("down", "its clock is not synchronised"),
    ("domain", "expired"): ("down", "its registration ended on"),
    ("domain", "gone"): ("down", "shop.example is not registered"),
    ("backup", "failed"): ("down", "it exited with 3: disk full"),
    ("backup", "silent"): ("down", "no signal since"),
}
"""How the agent tells of each fault that servers.py knows: the status, and a part of the error."""


class Play:
    """The example as it runs.

    `not_up`: what was not up at first. `found`: how the agent told of each fault; `mended`: of which it told the end.
    """

    def __init__(self, folder):
        self.file = folder / "uptime.toml"
        self.servers = Program(sys.executable, EXAMPLES / "servers.py", "--elsewhere", self.file, cwd=folder)
        self.servers.until("All of them work")
        text = self.file.read_text()
        for named, other in SOONER.items():
            assert named in text
            text = text.replace(named, other, 1)
        self.file.write_text(text)
        self.agent = Program(*AGENT, "run", self.file, "--json", cwd=folder)
        self.found, self.mended = {}, set()
        self.not_up = self._until({name: is_up for name, _ in FAULTS} | {"this machine": is_up}, 0)[1]

    def type(self, command):
        """Give the servers a command; return what they say to it."""
        return self.servers.type(command, passing_over="told: ")

    @property
    def checks(self):
        """What the agent has told of checks."""
        return events_of("check", self.agent.lines)

    @property
    def told(self):
        """What the webhook of servers.py was told, in that order."""
        return [line.removeprefix("told: ").strip() for line in self.servers.lines if line.startswith("told: ")]

    def round(self, faults, behind=()):
        """Break these targets in these ways, see what is told of them, mend them, and see that told as well.

        `behind`: what becomes unreachable by that.
        """
        since = len(self.agent.lines)
        for name, how in faults.items():
            assert self.type(f"break {name} {how}").startswith(f"{name} is broken: {how} (")
        once = {"domain": self._once(is_told("domain", faults["domain"]))} if "domain" in faults else {}
        wanted = {name: is_told(name, how) for name, how in faults.items() if name != "domain"}
        wanted |= {name: lambda event: event["cause"] is not None for name in behind}
        found, _ = self._until(wanted, since)
        self.found |= {(name, how): found.get(name) or once.get(name) for name, how in faults.items()}
        self.found |= {(name, "behind"): found.get(name) for name in behind}
        since = len(self.agent.lines)
        assert self.type("mend").startswith("mended: ")
        up, _ = self._until(dict.fromkeys(wanted, is_up), since)
        up |= {"domain": None} if "domain" in faults and self._once(is_up) else {}
        self.mended |= {(name, how) for name, how in faults.items() if name in up}

    def _until(self, wanted, since):
        """Wait for an event that each of these predicates accepts, by the name of its target: (found, missing)."""
        found = {}

        def look():
            nonlocal since
            new = self.agent.lines[since:]
            since += len(new)
            for event in events_of("check", new):
                if event["name"] in wanted and wanted[event["name"]](event):
                    found.setdefault(event["name"], event)
            return len(found) == len(wanted)

        with suppress(AssertionError):  # what is missing is told by its own test
            wait_until(look)
        return found, wanted.keys() - found.keys()

    def _once(self, accepts):
        """Check everything once, in another process: so one sees a domain again before six hours have passed.

        Return what is told of the domain, if that is accepted. It is asked again while this machine is held up.
        """
        command = [*AGENT, "run", self.file, "--once", "--json"]
        for _ in range(ENOUGH):
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert done.returncode in (0, 1), done.stderr
            told = {event["name"]: event for event in events_of("check", done.stdout.splitlines())}["domain"]
            if accepts(told):
                return told
            if told["status"] != "unknown":
                break
        return None


def is_up(event):
    """Tell whether a check has found its target up."""
    return event["status"] == "up"


HELD_UP = "but this machine was itself held up"
ENOUGH = 8
"""Checks with that reason, one after another, after which one sees that others have the machine."""


def is_told(name, how):
    """Return what tells the check that has found that fault, and has given its reason."""
    return is_found(*FAULTS[name, how])


def is_found(status, error):
    """Return what tells the check with that status and reason.

    An agent that gets no processor calls nobody late: each check is unknown then, for the reason and that one. Who
    waits for another would wait for the end of what others do on this machine.
    """
    doubts = 0

    def look(event):
        nonlocal doubts
        reason = event["error"] or ""
        if error not in reason:
            doubts = 0
            return False
        doubts = doubts + 1 if HELD_UP in reason else 0
        return event["status"] == status or (event["status"] == "unknown" and doubts >= ENOUGH)

    return look


def played(folder):
    """Play the whole example: round by round, and the gateway at the end, while its channel is broken too."""
    play = Play(folder)
    try:
        ways = {}
        for name, how in FAULTS:
            ways.setdefault(name, []).append(how)
        del ways["gateway"]
        while ways:
            play.round({name: hows.pop(0) for name, hows in ways.items()})
            ways = {name: hows for name, hows in ways.items() if hows}
        assert "takes no message" in play.type("break webhook")
        play.round({"gateway": "refused"}, behind=["shop"])
        with suppress(AssertionError):  # which a test below tells
            wait_until(lambda: is_over(play.told, "gateway"))
    finally:
        codes = play.agent.end(), play.servers.end()
    return {
        "not_up": sorted(play.not_up),
        "found": {" ".join(fault): event for fault, event in play.found.items()},
        "mended": [" ".join(fault) for fault in play.mended],
        "checks": play.checks,
        "told": play.told,
        "code": codes[0],
    }


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Have the example played once, whichever workers these tests run on."""
    return SimpleNamespace(**played_once(tmp_path_factory, "uptime-example", played))


def is_over(told, name):
    """Tell whether the last message about that target told of an end."""
    return " is up again" in next((text for text in reversed(told) if text.startswith(f"{name} ")), "")


def test_everything_is_up_before_anybody_breaks_it(play):
    """Echo requests may not be sent everywhere: then that is unknown, and why is told."""
    if "this machine" in play.not_up:
        first = next(event for event in play.checks if event["name"] == "this machine")
        assert first["status"] == "unknown"
        assert "net.ipv4.ping_group_range" in first["error"]
    assert set(play.not_up) <= {"this machine"}


@pytest.mark.parametrize(("name", "how"), FAULTS, ids=" ".join)
def test_a_target_that_breaks_is_told_with_its_reason_and_so_is_its_end(play, name, how):
    """By the commands of the example, and in the words of the agent."""
    seen = [(event["status"], event["error"]) for event in play.checks if event["name"] == name]
    assert play.found[f"{name} {how}"] is not None, seen
    assert f"{name} {how}" in play.mended, seen


def test_what_lies_behind_a_target_that_is_down_is_unreachable(play):
    """There is one alarm: nobody is told of the shop while its gateway refuses connections."""
    assert play.found["shop behind"]["error"].startswith("unreachable by gateway: connection refused by 127.0.0.1")
    *_, trigger, resolved = [text for text in play.told if text.startswith(("shop ", "gateway "))]
    assert trigger.startswith("gateway is down")
    assert trigger.endswith(play.found["gateway refused"]["error"])
    assert resolved.startswith("gateway is up again")


def test_what_the_channel_could_not_take_it_takes_when_it_works_again(play):
    """It was broken when the gateway went down, and was told all the same. No end comes before its beginning."""
    assert is_over(play.told, "gateway")
    for name in {text.split()[0] for text in play.told}:
        open_ones = [-1 if " is up again" in text else 1 for text in play.told if text.startswith(f"{name} ")]
        assert min(accumulate(open_ones)) >= 0


def test_two_of_three_are_down_and_so_is_their_group(play):
    """The first round breaks the website and the shop: the storefront is told as one thing too."""
    told = [text for text in play.told if text.startswith("storefront ")]
    assert told[0].endswith("2 of 3 are down: website, shop")
    assert " is up again" in told[1]


NETWORK = """
    ip link set lo up
    "$@" &
    while read ignore; do echo $ignore > /proc/sys/net/ipv4/icmp_echo_ignore_all; done
    kill $!
    wait $!
"""
"""A program in a network of its own, which is told to answer echo requests (0), or to ignore them (1)."""
NO_ANSWER = "no answer to its packet"


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs Linux and root: a network of its own")
def test_this_machine_is_down_while_it_ignores_echo_requests(tmp_path):
    """What no server of the example can break: in a network of its own the machine itself can be told to."""
    file = tmp_path / "uptime.toml"
    text = (EXAMPLES / "uptime.toml").read_text("utf-8").replace("certificates/", f"{EXAMPLES}/certificates/")
    file.write_text(text.replace('interval = "2s"', 'interval = "300ms"'))
    command = ["unshare", "-n", "sh", "-c", NETWORK, "sh", *AGENT, "run", file, "--json"]
    agent = Program(*command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    found = []
    try:
        for ignore, status, error in (("0", "up", ""), ("1", "down", NO_ANSWER), ("0", "up", "")):
            since = len(agent.lines)
            agent.process.stdin.write(f"{ignore}\n")
            agent.process.stdin.flush()

            def told(since=since, status=status, error=error):
                events = (each for each in events_of("check", agent.lines[since:]) if each["name"] == "this machine")
                return list(filter(is_found(status, error), events))

            wait_until(told)
            found.append(told()[0]["error"])
    finally:
        agent.process.stdin.close()
        code = agent.process.wait(PATIENCE)
        agent.process.stdout.close()
    assert (code, found[0], found[2]) == (0, None, None)
    assert found[1].startswith(NO_ANSWER)


def test_the_agent_ends_well(play):
    """As it is told to by a signal."""
    assert play.code == 0


def test_every_fault_that_the_servers_know_is_played():
    """A new one needs its row above."""
    listed = subprocess.check_output([sys.executable, EXAMPLES / "servers.py", "--faults"], text=True)
    assert {tuple(line.split()) for line in listed.splitlines()} == {*FAULTS, ("webhook", "503")}
