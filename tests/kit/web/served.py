"""Real servers for ASGI apps: uvicorn in a thread of this process, on TCP or on a Unix socket."""

import socket
import threading
from contextlib import contextmanager

import uvicorn

from kit import PATIENCE, wait_until


def listening(path=None):
    """Bind a socket: on a free port, or at this path."""
    bound = socket.socket(socket.AF_UNIX if path else socket.AF_INET, socket.SOCK_STREAM)
    bound.bind(str(path) if path else ("127.0.0.1", 0))
    return bound


def address_of(bound, prefix=""):
    """Name a bound socket as a client does."""
    if bound.family == socket.AF_UNIX:
        return f"unix:{bound.getsockname()}{':' if prefix else ''}{prefix}"
    return f"http://127.0.0.1:{bound.getsockname()[1]}{prefix}"


@contextmanager
def served(app, bound):
    """Serve an app on a bound socket for as long as the block lasts."""
    config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()
