"""A network of its own with hosts that answer echo requests as they are told; icmp:// checks of them, printed as JSON.

    unshare -n python tests/lab/echo_net.py RIGHTS BACKEND

RIGHTS say what this process may open: "datagram" (the group is in net.ipv4.ping_group_range, no CAP_NET_RAW), "raw"
(the other way round), "neither", "both". The hosts are 10.99.0.2 and fd99::2 and those that follow, one for each plan,
behind a TUN device that this program reads. Nothing leaves the namespace, which has no other way out.
"""

import fcntl
import functools
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections import defaultdict

import anyio

from timerqueue import SystemClock
from uptime_agent.checks import BY_SCHEME, Family, Mode, Resolver, TargetCheck
from uptime_agent.checks.net.echo import checksum
from uptime_agent.text import Redactor, parse_url

TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
PATIENT = 3.0  # seconds of a check in which packets are lost: each is waited for, on a machine that is busy
# What each host does with the packets of its check, one after another.
PLANS = {
    "unreachable": ["unreachable"],
    "well": ["reply"],
    "three": ["reply", "reply", "reply"],
    "one_lost": ["reply", "drop", "reply"],
    "none_may_be_lost": ["reply", "drop", "reply"],
    "two_lost": ["drop", "drop", "reply"],
    "all_lost": ["drop", "drop", "drop"],
    "twice": ["twice", "reply", "reply"],
    "damaged": ["damaged"],
    "late": ["hold", "reply+held", "reply"],
    "others": ["others"],
}
ONLY_V4 = {"unreachable", "none_may_be_lost"}


def open_tun():
    """Open the device and give it its addresses."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"echo0", IFF_TUN_NO_PI))
    for command in (
        "link set lo up",
        "link set echo0 up",
        "addr add 10.99.0.1/24 dev echo0",
        "-6 addr add fd99::1/64 dev echo0 nodad",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    return tun


class Hosts:
    """The hosts: each answers by its plan, all in one thread."""

    def __init__(self, tun):
        self._tun = tun
        self._plans = {}
        self._held = defaultdict(list)
        for number, (name, plan) in enumerate(PLANS.items()):
            for address in addresses(number, name):
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                self._plans[socket.inet_pton(family, address)] = list(plan)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            packet = os.read(self._tun, 4096)
            if packet[0] >> 4 == 4 and packet[9] == 1:
                begin = (packet[0] & 15) * 4
                self._answer(packet[16:20], packet, packet[begin:], self._reply4)
            elif packet[0] >> 4 == 6 and packet[6] == 58 and packet[40] == 128:
                self._answer(packet[24:40], packet, packet[40:], self._reply6)

    def _answer(self, host, packet, message, reply):
        if message[0] not in {8, 128}:
            return
        plan = self._plans.get(host)
        step = plan.pop(0) if plan else "reply"
        for each in self._sent(step, self._held[host], packet, message, reply):
            os.write(self._tun, each)

    def _sent(self, step, held, packet, message, reply):
        """Carry out a step: the packets to be sent."""
        right = reply(packet, message)
        match step:
            case "reply":
                return [right]
            case "twice":
                return [right, right]
            case "hold":
                held.append(right)
                return []
            case "reply+held":
                return [right, *held]
            case "damaged":
                wrong = message[:-1] + bytes([message[-1] ^ 1])
                return [reply(packet, wrong), reply(packet, message[:9]), reply(packet, message + b"x")]
            case "others":  # numbers and codes that are not ours, and at last the right one
                other = message[:6] + struct.pack("!H", 999) + message[8:]
                return [reply(packet, other), reply(packet, message, code=1), right]
            case "unreachable":
                return [self._refusal(packet)]
        return []

    def _reply4(self, packet, message, code=0):
        body = bytes([0, code, 0, 0]) + message[4:]
        body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
        return self._ip4(packet[16:20], packet[12:16], body)

    def _ip4(self, source, target, body):
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 1, 0, source, target)
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body

    def _reply6(self, packet, message, code=0):
        source, target = packet[24:40], packet[8:24]
        body = bytes([129, code, 0, 0]) + message[4:]
        summed = checksum(source + target + struct.pack("!II", len(body), 58) + body)
        body = body[:2] + struct.pack("!H", summed) + body[4:]
        return struct.pack("!IHBB", 6 << 28, len(body), 58, 64) + source + target + body

    def _refusal(self, packet):
        body = bytes([3, 1, 0, 0, 0, 0, 0, 0]) + packet[:28]
        body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
        return self._ip4(packet[16:20], packet[12:16], body)


async def check(url, within=10.0, **options):
    """Check a host as the agent does: [status, error, packets, lost]."""
    clock = SystemClock()
    found = BY_SCHEME["icmp"].make(url=parse_url(url, {"icmp": 0}), **options)
    result = await TargetCheck(
        check=found,
        needs=(),
        timeout=within,
        mode=Mode.ANY,
        family=Family.ANY,
        degraded_above=None,
        resolver=Resolver(),
        clock=clock,
        redactor=Redactor(()),
    ).run()
    return [result.status.value, result.error, result.detail.get("packets"), result.detail.get("lost")]


def addresses(number, name):
    """The addresses of the host with that plan."""
    return [f"10.99.0.{number + 2}", *([] if name in ONLY_V4 else [f"fd99::{number + 2:x}"])]


async def check_all():
    """Check by each plan, over both versions of IP, all at the same time."""
    found = {}

    async def note(name, url, within=10.0, **options):
        found[name] = await check(url, within, **options)

    async with anyio.create_task_group() as group:
        group.start_soon(note, "loopback", "icmp://127.0.0.1")
        group.start_soon(functools.partial(note, "loopback6", "icmp://[::1]", packets=5))
        group.start_soon(note, "no_route", "icmp://192.0.2.1")
        for number, (name, plan) in enumerate(PLANS.items()):
            within = PATIENT if {"drop", "hold", "damaged"} & set(plan) else 10.0
            options = {"packets": len(plan)} | ({"max_lost": 0} if name == "none_may_be_lost" else {})
            for address in addresses(number, name):
                url, key = (f"icmp://[{address}]", f"{name}6") if ":" in address else (f"icmp://{address}", name)
                group.start_soon(functools.partial(note, key, url, within, **options))
    return found


def main():
    """Set the network up, give up rights by starting once more, and check."""
    if sys.argv[1] != "checks":
        rights = sys.argv[1]
        groups = "0 2147483647" if rights in {"datagram", "both"} else "1 0"
        with open("/proc/sys/net/ipv4/ping_group_range", "w") as sysctl:  # noqa: PTH123 - of the namespace
            sysctl.write(groups)
        tun = open_tun()
        os.set_inheritable(tun, True)
        drop = [] if rights in {"raw", "both"} else ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
        command = [*drop, sys.executable, __file__, "checks", str(tun), sys.argv[2]]
        os.execvp(command[0], command)
    Hosts(int(sys.argv[2]))
    found = anyio.run(check_all, backend=sys.argv[3])
    kinds = {}
    for name, kind in (("datagram", socket.SOCK_DGRAM), ("raw", socket.SOCK_RAW)):
        try:
            socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP).close()
            kinds[name] = True
        except PermissionError:
            kinds[name] = False
    sys.stdout.write(json.dumps({"may": kinds, "found": found}))


if __name__ == "__main__":
    main()
