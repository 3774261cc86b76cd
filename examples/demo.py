"""Real checks of real servers on this machine: `python examples/demo.py [--for 10s] [--json] ...`.

Starts the servers of servers.py on free ports, in a thread, and runs `timerqueue run uptime.toml` against them. The
arguments are those of `timerqueue run`.
"""

import socket
import sys
import tempfile
import threading
from pathlib import Path

import anyio
from servers import HOST, serve

from scheduler.agent.__main__ import main

HERE = Path(__file__).resolve().parent
REFUSED = 18085


def start_servers() -> dict[int, int]:
    """Serve in a thread that ends with the program. The ports, by those that uptime.toml names."""
    ports: dict[int, int] = {REFUSED: free_port()}
    is_ready = threading.Event()

    async def run() -> None:
        async with anyio.create_task_group() as group:
            ports.update(await group.start(lambda *, task_status: serve(any_port=True, task_status=task_status)))
            is_ready.set()

    threading.Thread(target=anyio.run, args=(run,), daemon=True, name="demo servers").start()
    if not is_ready.wait(timeout=30):
        sys.exit("demo.py: the servers did not start")
    return ports


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server((HOST, 0)) as server:
        return server.getsockname()[1]


def config_for(ports: dict[int, int]) -> str:
    """uptime.toml with the ports on which the servers really are."""
    text = (HERE / "uptime.toml").read_text("utf-8")
    for named, real in ports.items():
        text = text.replace(f"{HOST}:{named}", f"{HOST}:{real}")
    return text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="timerqueue-demo-") as folder:
        config = Path(folder, "uptime.toml")
        config.write_text(config_for(start_servers()), "utf-8")
        sys.argv = ["timerqueue", "run", str(config), *sys.argv[1:]]
        main()
