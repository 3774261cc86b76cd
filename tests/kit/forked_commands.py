"""The command `timerqueue`, run many times out of one process that has imported it once: what it says is the same.

To import it costs more than most commands do, and tests run hundreds. This program has one thread, so that what it
forks is sound. Each command has a process of its own, with its own arguments, environment, folder and output, and ends
as Python ends. What is to be killed, or told apart from its parent, is started as a program: see tests/kit/programs.py.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress

from kit import PATIENCE

MOST = 1 << 20
"""Bytes of one command with its environment."""

READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "TZ")
"""How names of variables begin that Python or the C library reads when it starts: they need a process from scratch."""


class ForkedCommands:
    """Commands of a process that runs until `close`."""

    def __init__(self):
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def close(self):
        self._ours.close()
        self._process.wait(PATIENCE)

    def run(self, args, environment):
        """Run a command to its end: (exit code, standard output, standard error). A signal's code is negative."""
        told, tells = os.pipe()
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            open(os.devnull, "rb") as none,  # noqa: PTH123
            open(told, "rb") as status,  # noqa: PTH123
        ):
            asked = json.dumps([args, environment, os.getcwd()]).encode()  # noqa: PTH109
            files = [each.fileno() for each in (none, out, err)]
            socket.send_fds(self._ours, [asked], [*files, tells])
            os.close(tells)
            said = status.read()
            assert said, "the process that forks commands is gone"
            return int(said), *(_content(each) for each in (out, err))


def _content(file):
    file.seek(0)
    return file.read().decode()


def serve(asked):
    """Fork one process for each command that comes, which forks it, waits for it, and tells how it ended."""
    from uptime_agent import __main__, app, cli  # noqa: F401, PLC0415 - once, for all of them

    while True:
        message, files, *_ = socket.recv_fds(asked, MOST, 4)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not message:
            return
        if not os.fork():
            asked.close()
            pid = os.fork()
            if not pid:
                become(*json.loads(message), files)
                __main__.main()
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with suppress(BrokenPipeError):
                os.write(files[-1], str(code).encode())
            os._exit(0)
        for each in files:
            os.close(each)


def become(args, environment, folder, files):
    """Be as if started with these, and with the first three files as standard input, output and error."""
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["timerqueue", *args]
    sys.path[0] = folder


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
