"""Real checks of real servers on this machine: `python examples/demo.py [--for 10s] [--json] ...`.

It starts the servers of servers.py on free ports, in a thread, breaks some of them, and runs `timerqueue run
uptime.toml` against them. It takes the arguments of `timerqueue run`. What it remembers is deleted at the end.
"""

import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio

from servers import config_for, serve, targets
from uptime_agent.__main__ import leave, run

BROKEN = {
    "website": "flaps",
    "gateway": "refused",
    "search": "slow",
    "reports": "stuck",
    "mail": "banner",
    "names": "wrong",
}
INTENDED = """\
Six of the servers are broken on purpose: website fails half of the time, search is slow, reports answers too late, mail
takes no mail, names tells a wrong address, and gateway refuses connections, so that shop behind it is unreachable.
"""


def start_servers() -> dict[int, int]:
    """Serve in a thread that ends with the program. The ports, by those that uptime.toml names."""
    ports: dict[int, int] = {}
    is_ready = threading.Event()
    chosen = targets(tell=lambda _: None)
    for each in chosen:
        each.become(BROKEN.get(each.name))

    async def run() -> None:
        async with anyio.create_task_group() as group:
            ports.update(await group.start(partial(serve, chosen, elsewhere=True)))
            is_ready.set()

    threading.Thread(target=anyio.run, args=(run,), daemon=True, name="demo servers").start()
    if not is_ready.wait(timeout=30):
        sys.exit("demo.py: the servers did not start")
    return ports


def demonstrate(arguments: list[str]) -> str | int | None:
    """Run the agent in a folder that is removed at the end, whatever ends it. Returns the exit code."""
    early: list[int] = []
    on_signals(lambda number, _: early.append(number))  # a folder that is only half made would stay behind
    try:
        with tempfile.TemporaryDirectory(prefix="timerqueue-demo-") as folder:
            try:
                on_signals(lambda number, _: sys.exit(128 + number))  # until the agent takes them over
                if early:
                    return 128 + early[0]
                return run_in(Path(folder), arguments)
            finally:
                on_signals(signal.SIG_IGN)  # or one more would leave the folder behind
    except SystemExit as exc:
        return exc.code


def run_in(folder: Path, arguments: list[str]) -> str | int | None:
    """Check the servers by a configuration in that folder. Returns the exit code."""
    config = folder / "uptime.toml"
    config.write_text(config_for(start_servers()), "utf-8")
    if "--json" not in arguments:
        print(INTENDED)
    sys.argv = ["timerqueue", "run", str(config), *arguments]
    return run()


def on_signals(handler: Callable[[int, object], None] | signal.Handlers) -> None:
    """Take what asks the program to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


if __name__ == "__main__":
    leave(demonstrate(sys.argv[1:]))
