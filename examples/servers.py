"""Servers for uptime.toml to check, all on 127.0.0.1. They work until you break them.

    python examples/servers.py                       serves on the ports that uptime.toml names, until Ctrl-C
    python examples/servers.py --elsewhere my.toml   on any free ports, and writes an uptime.toml with these

Type `break website` meanwhile, or `mend website`; `list` says what can break, and how.
"""

import argparse
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import answers
import anyio
from anyio.abc import ByteStream, SocketAttribute, TaskStatus
from commands import HELP, obey, typed

HOST = "127.0.0.1"
HERE = Path(__file__).resolve().parent
REFUSED = {"refused": "nobody listens"}
SIGNAL_EVERY = 0.5
HELD: list[socket.socket] = []

Talk = Callable[[ByteStream, str | None], Awaitable[None]]
Reply = Callable[[bytes, str | None], bytes | None]


class Target:
    """A target of uptime.toml, on the port that it names there. `broken`: how; None: it works.

    `behind`: the target through which it is reached. While that refuses, so does this one.
    """

    changed = anyio.Event()

    def __init__(self, name: str, port: int, faults: Mapping[str, str], behind: "Target | None" = None) -> None:
        self.name, self.port, self.faults, self.behind = name, port, faults, behind
        self.broken: str | None = None

    @property
    def refuses(self) -> bool:
        return self.broken in REFUSED or (self.behind is not None and self.behind.refuses)

    def become(self, how: str | None) -> None:
        self.broken = how
        Target.changed.set()
        Target.changed = anyio.Event()

    async def run(self, port: int, *, task_status: TaskStatus[int]) -> None:
        """Be there on that port, or on any for 0; tells which."""
        raise NotImplementedError


class Listener(Target):
    """A target over TCP. `talk` speaks over each connection, and hears how the target is broken."""

    def __init__(self, talk: Talk, *about: Any, **more: Any) -> None:
        super().__init__(*about, **more)
        self.talk = talk

    async def run(self, port: int, *, task_status: TaskStatus[int]) -> None:
        port = port or free_port()
        if self.refuses:  # to listen for a moment only would let asyncio lose who comes then, and say so
            task_status.started(port)
            task_status = anyio.TASK_STATUS_IGNORED
            await self.until(refuses=False)
        while True:
            listener = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
            async with listener, anyio.create_task_group() as group:
                group.start_soon(listener.serve, self.handle)
                task_status.started(port)
                await self.until(refuses=True)
                group.cancel_scope.cancel()
            task_status = anyio.TASK_STATUS_IGNORED
            await self.until(refuses=False)

    async def until(self, *, refuses: bool) -> None:
        while self.refuses is not refuses:
            await Target.changed.wait()

    async def handle(self, stream: ByteStream) -> None:
        with suppress(Exception):  # whoever leaves early, or talks garbage, ends nothing but this
            async with stream:
                await self.talk(stream, self.broken)


class Answerer(Target):
    """A target over UDP. `reply` answers a datagram with another, or with None."""

    def __init__(self, reply: Reply, *about: Any) -> None:
        super().__init__(*about)
        self.reply = reply

    async def run(self, port: int, *, task_status: TaskStatus[int]) -> None:
        async with await anyio.create_udp_socket(local_host=HOST, local_port=port) as udp:
            task_status.started(udp.extra(SocketAttribute.local_port))  # noqa: S610 - not Django's
            async for data, sender in udp:
                with suppress(Exception):
                    answer = self.reply(data, self.broken)
                    if answer is not None:
                        await udp.sendto(answer, *sender)


class Reporter(Target):
    """A target that reports to the agent, twice a second, as a backup would once a night."""

    async def run(self, port: int, *, task_status: TaskStatus[int]) -> None:
        port = port or free_port()
        task_status.started(port)
        while True:
            with suppress(OSError):  # no agent runs
                async with await anyio.connect_tcp(HOST, port) as stream:
                    await answers.signal(stream, self.broken)
            await anyio.sleep(SIGNAL_EVERY)


def say(text: str) -> None:
    """Say something at once, also to a pipe."""
    print(text, flush=True)


def targets(tell: Callable[[str], None] = say) -> list[Target]:
    """All of them, with the ports and in the order of uptime.toml. `tell` hears what the agent tells its channel."""
    gateway = Listener(answers.nothing, "gateway", 18084, REFUSED)
    return [
        Listener(
            answers.website(),
            "website",
            18080,
            {
                "503": "answers with status 503",
                "wrong": "shows another page",
                "flaps": "works twice, fails twice, and so on",
            }
            | REFUSED,
        ),
        gateway,
        Listener(answers.shop, "shop", 18081, {"empty": "has nothing to sell"}, behind=gateway),
        Listener(answers.search, "search", 18082, {"slow": "takes 0.6 s"}),
        Listener(answers.reports, "reports", 18083, {"stuck": "takes 5 s, longer than the timeout"}),
        Listener(answers.order, "order", 18086, {"login": "lets nobody in", "basket": "forgets who has logged in"}),
        Listener(answers.certificate, "certificate", 18087, {"expired": "has expired", "plain": "speaks no TLS"}),
        Listener(answers.mail, "mail", 18088, {"banner": "takes no mail", "plain": "offers no TLS"}),
        Listener(answers.cache, "cache", 18089, {"loading": "answers with an error"} | REFUSED),
        Answerer(
            answers.names,
            "names",
            18053,
            {"wrong": "has another address", "gone": "does not know the name", "silent": "says nothing"},
        ),
        Answerer(answers.clock, "clock", 18123, {"wrong": "is 90 s ahead", "lost": "is not synchronised"}),
        Listener(answers.registry, "domain", 18043, {"expired": "has ended", "gone": "is not registered"}),
        Reporter("backup", 18075, {"failed": "exits with code 3", "silent": "says nothing"}),
        Listener(partial(answers.webhook, tell), "webhook", 18090, {"503": "takes no message"}),
    ]


def free_port() -> int:
    """A port on which nobody listens but us. It is held until this program ends: a target that refuses comes back."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # so that we may listen there
    held.bind((HOST, 0))
    port: int = held.getsockname()[1]
    if os.name == "posix":
        HELD.append(held)
    else:  # where nobody may listen at a port that is held
        held.close()
    return port


def check_free(ports: Iterable[int]) -> None:
    """End this program with a sentence if somebody else listens on one of these ports."""
    for port in ports:
        try:
            socket.create_server((HOST, port)).close()
        except OSError as exc:
            sys.exit(f"cannot serve on {HOST} port {port}: {os.strerror(exc.errno or 0).lower()}; see --elsewhere")


async def serve(
    chosen: list[Target],
    *,
    elsewhere: bool = False,
    task_status: TaskStatus[dict[int, int]] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serve for ever. Tells on which ports, by those that uptime.toml names."""
    async with anyio.create_task_group() as group:
        task_status.started({each.port: await group.start(each.run, 0 if elsewhere else each.port) for each in chosen})


def config_for(ports: Mapping[int, int]) -> str:
    """uptime.toml with the ports on which the servers really are."""
    text = (HERE / "uptime.toml").read_text("utf-8").replace('"certificates/', f'"{HERE}/certificates/')
    for named, real in ports.items():
        text = text.replace(f"{HOST}:{named}", f"{HOST}:{real}")
    return text


async def main(elsewhere: Path | None) -> None:
    chosen = targets()
    if elsewhere is None:
        check_free(each.port for each in chosen if isinstance(each, Listener))
    async with anyio.create_task_group() as group:
        ports = await group.start(partial(serve, chosen, elsewhere=elsewhere is not None))
        if elsewhere is not None:
            await anyio.Path(elsewhere).write_text(config_for(ports), "utf-8")
        for each in chosen:
            say(f"{each.name:<12} {HOST}:{ports[each.port]}")
        say(f"All of them work. {HELP}")
        async for line in typed():
            say(obey(line, chosen))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elsewhere", type=Path, metavar="FILE")
    parser.add_argument("--faults", action="store_true", help="only say what can break, and in which ways")
    options = parser.parse_args()
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)  # in the background of a shell they serve, and take no commands
    if options.faults:
        print(*(f"{each.name} {how}" for each in targets() for how in each.faults), sep="\n")
    else:
        with suppress(KeyboardInterrupt):
            anyio.run(main, options.elsewhere)
