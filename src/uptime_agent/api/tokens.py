"""Tokens of the control API. The file holds their hashes: a token cannot be read out of it.

A line is a name, a scope and a hash. The file is written atomically, with mode 0600, and read again when it changes.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from attrs import define, field, frozen

from timerqueue import Random

from ..web import held

BYTES: Final = 32
PREFIX: Final = "tq_"
"""A scanner of sources finds a token by it."""

MOST: Final = 1_000
LONGEST_FILE: Final = 1024 * 1024

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LINE: Final = re.compile(rf"({_NAME.pattern}) (read|operate|admin) ([0-9a-f]{{64}})")
_OTHERS: Final = 0o077


class TokensUnfit(Exception):
    """The file of tokens cannot be used, or a token cannot be added. The text says why."""


@frozen
class Token:
    """A caller's name and scope, and the hash of the secret."""

    name: str
    scope: str
    digest: str = field(repr=False)


def made(random: Random) -> str:
    """Make a secret of 256 random bits."""
    return PREFIX + bytes(int(random() * 256) for _ in range(BYTES)).hex()


def digest_of(secret: str) -> str:
    """Hash a secret. It is random, so no salt is needed."""
    return sha256(secret.encode()).hexdigest()


def found(tokens: tuple[Token, ...], secret: str) -> Token | None:
    """Return the token with this secret. The time tells nothing of the others."""
    asked, match = digest_of(secret), None
    for each in tokens:
        if hmac.compare_digest(each.digest, asked):
            match = each
    return match


@define(eq=False)
class TokenFile:
    """The tokens of a file. A missing file has none."""

    path: Path
    _stamp: tuple[int, int, int, int] | None = None
    _tokens: tuple[Token, ...] = ()
    _trouble: str | None = None

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens as the file has them now. A file that cannot be used has none."""
        stamp = _stamp_of(self.path)
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._tokens, self._trouble = read_tokens(self.path), None
            except TokensUnfit as exc:
                self._tokens, self._trouble = (), str(exc)
        return self._tokens

    @property
    def trouble(self) -> str | None:
        """Why the file has no tokens, though it is there."""
        return None if self.tokens else self._trouble

    def find(self, secret: str) -> Token | None:
        """Return the token with this secret."""
        return found(self.tokens, secret)

    def has(self, token: Token) -> bool:
        """Whether the token was not revoked."""
        return token in self.tokens

    def add(self, name: str, scope: str, secret: str) -> Token:
        """Add a token. Raises TokensUnfit if the name is taken, or the file cannot be written."""
        if not _NAME.fullmatch(name):
            raise TokensUnfit(f"a name has 1 to 64 of the characters A-Z a-z 0-9 . _ @ - and not {name[:100]!r}")
        with _alone(self.path):
            present = read_tokens(self.path)
            if any(each.name == name for each in present):
                raise TokensUnfit(f"there is a token {name!r}: revoke it first, or choose another name")
            if len(present) >= MOST:
                raise TokensUnfit(f"there are {MOST:,} tokens already: revoke some")
            token = Token(name, scope, digest_of(secret))
            _write(self.path, (*present, token))
        return token

    def revoke(self, name: str) -> None:
        """Remove a token. Raises TokensUnfit if there is none of that name."""
        with _alone(self.path):
            present = read_tokens(self.path)
            kept = tuple(each for each in present if each.name != name)
            if len(kept) == len(present):
                names = ", ".join(each.name for each in present) or "no token at all"
                raise TokensUnfit(f"there is no token {name!r:.100}; there is {names:.500}")
            _write(self.path, kept)


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Read a file of tokens. Raises TokensUnfit."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        opened = os.fdopen(descriptor, "rb")
    except FileNotFoundError:
        return ()
    except OSError as exc:
        raise TokensUnfit(f"cannot read the tokens in {path}: {_reason(exc)}") from None
    with opened:
        status = os.fstat(opened.fileno())
        if os.name == "posix" and status.st_mode & _OTHERS:
            raise TokensUnfit(f"others may read or write the tokens in {path}: chmod 600 it")
        if os.name == "posix" and status.st_uid not in {0, os.geteuid()}:
            raise TokensUnfit(f"the tokens in {path} belong to another user: chown the file")
        try:
            text = opened.read(LONGEST_FILE).decode("ascii", "replace")
        except OSError as exc:
            raise TokensUnfit(f"cannot read the tokens in {path}: {_reason(exc)}") from None
    return tuple(_read(text, path))


def _read(text: str, path: Path) -> Iterator[Token]:
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise TokensUnfit(f"{path}:{number}: expected a name, a scope and a hash, as `timerqueue token add` writes")
        yield Token(match[1], match[2], match[3])


def _write(path: Path, tokens: tuple[Token, ...]) -> None:
    """Replace the file as a whole."""
    beside = path.with_name(f"{path.name}.new")
    try:
        with suppress(FileNotFoundError):
            beside.unlink()
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as opened:
            opened.writelines(f"{each.name} {each.scope} {each.digest}\n" for each in tokens)
            opened.flush()
            os.fsync(opened.fileno())
        beside.replace(path)
    except OSError as exc:
        raise TokensUnfit(f"cannot write the tokens to {path}: {_reason(exc)}") from None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the folder, so that two commands do not write at once. It is made if it is missing."""
    with ExitStack() as stack:
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            owner = path.parent.stat().st_uid
            if os.name == "posix" and os.geteuid() == 0 != owner:  # the agent could not read a file of root's
                raise TokensUnfit(f"the folder {path.parent} belongs to user {owner}: do this as that user (sudo -u)")
            stack.enter_context(held(path.parent))
        except OSError as exc:
            raise TokensUnfit(f"cannot write tokens into {path.parent}: {_reason(exc)}") from None
        yield


def _stamp_of(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
