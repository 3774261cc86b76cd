"""Nodes of controlled_node.py: processes with a scheduler and its control API, which are started, killed and asked."""

import json
import subprocess
import sys

from kit import PATIENCE, wait_until
from programs import path_of
from scheduler.web import ApiError, Client, Unreachable
from served import address_of, listening

PROGRAM = path_of("controlled_node")


class Walker(Client):
    """A client that notes which routes it has asked for, as (method, path)."""

    def __init__(self, address, walked, **options):
        super().__init__(address, token="ann:admin", **options)
        self.walked = walked

    def ask(self, method, path, body=None, **options):
        """Take note, and ask."""
        self.walked.add((method, path))
        return super().ask(method, path, body, **options)


class Nodes:
    """Processes by name. `walked`: what all clients have asked for."""

    def __init__(self, folder):
        self.folder = folder
        self.log = folder / "runs"
        self.log.touch()
        self.processes, self.addresses, self.walked = {}, {}, set()

    def start(self, store, name="node", *, on_socket=False):
        """Start a node, and return its client once it answers."""
        bound = listening(self.folder / f"{name}-{len(self.addresses)}.sock" if on_socket else None)
        bound.set_inheritable(True)
        config = json.dumps({"store": store, "fd": bound.fileno(), "log": str(self.log)})
        with (self.folder / f"{name}.log").open("a") as errors:
            process = subprocess.Popen(
                [sys.executable, PROGRAM, config],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                pass_fds=[bound.fileno()],
            )
        address = address_of(bound)
        bound.close()
        self.processes[name], self.addresses[name] = process, address
        assert process.stdout.readline() == "runs\n", (self.folder / f"{name}.log").read_text()
        return Walker(address, self.walked)

    def kill(self, name):
        """Kill a node with SIGKILL."""
        process = self.processes.pop(name)
        process.kill()
        process.communicate(timeout=PATIENCE)

    def stop(self, name):
        """Stop a node in order."""
        process = self.processes.pop(name)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, (self.folder / f"{name}.log").read_text()

    def runs(self):
        """Return (job id, due in microseconds) of each run."""
        return [tuple(line.split()[:2]) for line in self.log.read_text("utf-8").splitlines()]

    def close(self):
        """Kill what is left."""
        for name in list(self.processes):
            self.kill(name)


def eventually(verb, *refused):
    """Call a verb until it is not refused, and return what it answers: other nodes read changes by polls."""
    found = []

    def is_answered():
        try:
            found.append(verb())
        except (ApiError, Unreachable, *refused):
            return False
        return True

    wait_until(is_answered)
    return found[0]
