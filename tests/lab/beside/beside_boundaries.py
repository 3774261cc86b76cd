"""The boundaries of an agent, and the configuration that lets hostile inputs in, next to fifty healthy targets."""

from pathlib import Path

from attrs import frozen

from beside_strangers import TOKEN

HEALTHY = [f"healthy {number}" for number in range(50)]
TOO_FEW = 256
"""Descriptors, as on macOS."""


@frozen
class Boundary:
    """One boundary. `more`: returns its tables, given the servers' ports, the push port and the number of inputs.

    `reaches`: texts that the agent says once inputs came in. `times`: a factor for the number of inputs.
    `descriptors`: the agent's limit of open files. None: the limit of this process.
    """

    more: object
    reaches: tuple[str, ...] = ()
    times: int = 1
    descriptors: int | None = None


def configuration(boundary, port_of_healthy, ports, push_port, inputs):
    """Write the configuration. Each healthy target has a host of its own. Every fifth is checked over TCP alone."""
    lines = ['store = "sqlite:///uptime.db"', "[history]\nper_job = 5", '[defaults]\ninterval = "1s"\ntimeout = "20s"']
    lines += ['[limits]\n"host:127.0.0.1" = 30\n[hosts]\n[notify]\ndigest = false\nreminders = "3s"\nexpiry = "20s"']
    for number, name in enumerate(HEALTHY):
        place = f"127.1.0.{number + 1}:{port_of_healthy}"
        url, more = (f"tcp://{place}", "") if number % 5 == 0 else (f"http://{place}/", 'contains = "hello"')
        lines.append(f'[[check]]\nname = "{name}"\nurl = "{url}"\nnotify = []\n{more}')
    lines += BOUNDARIES[boundary].more(ports, push_port, inputs)
    return "\n".join([*lines, '[[check]]\nname = "the last one"\nurl = "tcp://127.0.0.1:9"\ninterval = "1h"\n'])


def targets(number, url, more='interval = "20ms"\ntimeout = "300ms"'):
    """Write this number of targets. Each is checked every 20 ms, unless its last check still runs."""
    for which in range(number):
        yield f'[[check]]\nname = "hostile {which}"\nurl = "{url.format(which)}"\nnotify = []\n{more}'


def dns(ports, *_):
    return targets(20, f"dns://127.0.0.1:{ports[0]}/www{{}}.example.org")


def ntp(ports, *_):
    return targets(20, f"ntp://127.0.0.1:{ports[0]}")


def rdap(ports, _push, inputs):
    """Write a target for each answer, because a registry is asked once in six hours. Each name has eleven letters."""
    more = f'interval = "6h"\ntimeout = "1s"\nstart = "now"\nserver = "http://127.0.0.1:{ports[0]}/"'
    return targets(inputs + 100, "domain://a{:06}.org", more)


def postgres(ports, *_):
    place = f"127.0.0.1:{ports[0]}"
    yield from targets(
        15, f"postgresql://me@{place}/of{{}}", 'interval = "20ms"\ntimeout = "500ms"\nsslmode = "disable"'
    )
    for number in range(5):
        probes = 'probes = { node_role = "1s", statements = "1s", connectivity = "1s" }'
        dsn = f"host=127.0.0.1 port={ports[0]} user=me dbname=probed{number}"
        yield f'[[postgres]]\nname = "probed {number}"\ndsn = "{dsn}"\nwait = "1s"\n{probes}'


def tables(ports, *_):
    yield f'[probes]\nfrom = "postgresql://me@127.0.0.1:{ports[0]}/tables"\npoll = "20ms"'


def channels(down, more):
    """Write channels, and targets that are down. Each channel gets reminders of each target."""
    for which in range(30):
        yield f'[[channel]]\nname = "c{which}"\ntimeout = "10s"\n{more}'
    for which in range(down):
        yield f'[[check]]\nname = "down {which}"\nurl = "tcp://127.0.0.1:9"\ninterval = "5s"\nstart = "now"'


def webhook(ports, *_):
    return channels(10, f'kind = "webhook"\nurl = "http://127.0.0.1:{ports[0]}/"')


def smtp(ports, *_):
    mail = f'host = "127.0.0.1"\nport = {ports[0]}\ntls = "none"\nfrom = "a@example.org"\nto = "b@example.org"'
    return channels(40, f'kind = "email"\n{mail}')


def push(_ports, push_port, _inputs):
    yield f'[push]\nlisten = "127.0.0.1:{push_port}"'
    yield f'[[check]]\nname = "backup"\nurl = "push://backup"\ntoken = "{TOKEN}"\ninterval = "2s"\ngrace = "60s"'


def nothing(*_):
    return ()


TOLD = ("told c", "messages are kept")
UNKNOWN_TOKEN = "a token that no push check has"
BOUNDARIES = {
    "push": Boundary(push, reaches=(UNKNOWN_TOKEN,)),
    "crowd": Boundary(push, reaches=(UNKNOWN_TOKEN, "turned away"), times=2, descriptors=TOO_FEW),
    "postgres": Boundary(postgres, reaches=("up", "down")),
    "tables": Boundary(tables, reaches=("is not used",)),
    "smtp": Boundary(smtp, reaches=TOLD),
    "webhook": Boundary(webhook, reaches=TOLD),
    "dns": Boundary(dns, reaches=("up", "down")),
    "ntp": Boundary(ntp, reaches=("up", "down")),
    "rdap": Boundary(rdap, reaches=("up", "unknown")),
    "toml": Boundary(nothing, reaches=("configuration read again", "is not used")),
    "yaml": Boundary(nothing),
}


def port_of(boundary):
    """Return the push port of a boundary. It lies below the ports that the system gives to connections."""
    return 8_000 + list(BOUNDARIES).index(boundary)


def command_of(boundary, program):
    """Return the command of an agent, with the boundary's limit of open files."""
    most = BOUNDARIES[boundary].descriptors
    return program if most is None else ["/bin/sh", "-c", f'ulimit -n {most}; exec "$0" "$@"', *program]


def file_in(folder):
    """Return the path of the configuration."""
    return Path(folder, "uptime.toml")
