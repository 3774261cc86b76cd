"""Rows of the tables that name servers to probe, of which something is odd."""

import json

KEYS = "password_env password_file cluster group databases exclude most_databases connection_limit wait budget tags"
SERVER = dict.fromkeys(KEYS.split()) | {"dsn": "host=one.invalid", "is_enabled": True}
PROBE = {
    "scope": "global",
    "of": None,
    "probe": "locks",
    "is_enabled": None,
    "interval": 5,
    "timeout": 1,
    "retention": 9,
}
ODD = (
    None, True, 0, -1, 1.5, 1e308, 10**400, "", "x", "\ud800", "\0", "\x1b[2J", "a" * 600, [], [[]], {}, ["a", None],
    ["*", "b_?"], "global", "server", "cluster", "A_PASSWORD", "passwords/a", "passwords/../x", "/etc/passwd", "30 s",
    "host=a port=0", "host=a,b", "postgresql://x:y@h/z", "host=a\0b", "host='", "service=x", "activity", "NaN", 1e-9,
)  # fmt: skip


def mangled_row(chance, key):
    """Make a row as it comes: a table, a key and JSON, of which something is odd."""
    table, values = chance.choice(((b"servers", SERVER), (b"probe_configs", PROBE)))
    values = dict(values)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        values[chance.choice([*values, "other"])] = chance.choice(ODD)
    for _ in range(chance.choice((0, 0, 0, 1))):
        del values[chance.choice(list(values))]
    content = json.dumps(values).encode()
    odd = [content] * 8 + [None, b"", b"{", b"[1]", b"\xff" + content, b"[" * 50_000, b'{"a":' * 9_000, b" " * 70_000]
    return (
        chance.choice((table, table, table, table, b"meta", b"caf\xe9", None)),
        chance.choice((b"%d" % key, b"%d" % key, b"taken", b"\xff", None, b"x" * 5000)),
        chance.choice(odd),
    )
