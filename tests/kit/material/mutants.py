"""Mutants of proper answers: what a peer sends that is broken, hostile, or not what it says it is."""

import random

STRANGE = (
    b"",
    b"\0",
    b"\r\n",
    b"\n\n",
    b"\xff" * 8,
    b"-1",
    b"9" * 5_000,
    b"\x1b[2J",
    b"%s%n",
    b"{" * 200,
    b'"' * 50,
    "\u202e\ud7ff".encode(),
    b"0" * 70_000,
)
"""Pieces at which readers stumble."""


def mutants(seeds, count, seed=1):
    """Yield so many mutants of the seeds, the same ones each time."""
    rng = random.Random(seed)
    for _ in range(count):
        found = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            _mutate(found, rng, seeds)
        yield bytes(found)


def _mutate(found, rng, seeds):
    """Change one thing."""
    start, end = sorted(rng.randrange(len(found) + 1) for _ in range(2))
    match rng.randrange(8):
        case 0 if found:
            found[rng.randrange(len(found))] = rng.randrange(256)
        case 1:
            del found[start : min(end, start + 20)]
        case 2:
            del found[start:]
        case 3:
            found[start:start] = found[start:end] * rng.choice((1, 2, 300))
        case 4:
            found[start:start] = rng.choice(STRANGE)
        case 5:
            found[start:end] = rng.choice(STRANGE)
        case 6:
            found[start:start] = rng.randbytes(rng.randrange(1, 40))
        case _:
            found[start:] = rng.choice(seeds)[start:]
    del found[200_000:]
