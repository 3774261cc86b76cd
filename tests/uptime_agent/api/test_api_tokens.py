"""Tokens: random, hashed at rest, written whole, and read again when they change."""

import os
import stat
import threading

import pytest
from hypothesis import given, strategies as st

from timerqueue import seeded_random, system_random
from uptime_agent.api import Token, TokenFile, TokensUnfit, made
from uptime_agent.api.tokens import digest_of, found, read_tokens
from uptime_agent.web import held

posix = pytest.mark.skipif(os.name != "posix", reason="needs rights of files")


@pytest.fixture
def file(tmp_path):
    """Return a file of tokens in a folder that is not there yet."""
    return TokenFile(tmp_path / "a.api" / "tokens")


def test_a_token_has_256_random_bits():
    """From the system's randomness, and none like another."""
    some = {made(system_random()) for _ in range(100)}
    assert len(some) == 100
    assert all(len(each) == len("tq_") + 64 for each in some)
    bits = 0
    for number in range(64):
        bits |= int(made(seeded_random(number)).removeprefix("tq_"), 16)
    assert bits == 2**256 - 1


def test_the_file_holds_no_token(file):
    """But its hash: who reads a backup cannot ask with it."""
    secret = made(system_random())
    file.add("ann", "admin", secret)
    assert secret not in file.path.read_text()
    assert secret.removeprefix("tq_") not in file.path.read_text()
    assert file.find(secret) == Token("ann", "admin", digest_of(secret))
    assert digest_of(secret) not in repr(file.find(secret))


@posix
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_only_its_user_can_read_the_file(file, umask):
    """Whatever the umask is, also after a change."""
    before = os.umask(umask)
    try:
        file.add("ann", "read", "a")
        file.add("bob", "read", "b")
        file.revoke("ann")
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


def test_a_running_agent_sees_each_change(file):
    """Another process writes the file: the next request counts."""
    other = TokenFile(file.path)
    assert file.tokens == ()
    other.add("ann", "read", "a")
    token = file.find("a")
    assert (token.name, file.has(token)) == ("ann", True)
    other.revoke("ann")
    assert (file.find("a"), file.has(token)) == (None, False)
    other.add("ann", "read", "another")
    assert (file.find("a"), file.has(token)) == (None, False)


@pytest.mark.parametrize("name", ["", "a b", "uid 0", "-a", "a\nb admin", "ä", "a" * 65, "../x"])
def test_a_name_that_could_be_taken_for_something_else_is_refused(file, name):
    """It stands in a line of the file, in the log and in changes."""
    with pytest.raises(TokensUnfit, match="a name has"):
        file.add(name, "read", "x")


def test_a_name_has_one_token(file):
    """Else one could not be revoked."""
    file.add("ann", "read", "a")
    with pytest.raises(TokensUnfit, match="revoke it first"):
        file.add("ann", "admin", "b")
    with pytest.raises(TokensUnfit, match="there is ann"):
        file.revoke("bob")


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_can_reach_gives_nobody_access(file, mode):
    """It says so, and what to do."""
    file.add("ann", "admin", "a")
    file.path.chmod(mode)
    assert file.find("a") is None
    assert "chmod 600" in file.trouble
    with pytest.raises(TokensUnfit, match="chmod 600"):
        file.add("bob", "read", "b")
    file.path.chmod(0o600)
    assert file.find("a").name == "ann"
    assert file.trouble is None


@posix
def test_a_link_in_its_place_gives_nobody_access(file, tmp_path):
    """Who can make one could name a file of his own."""
    TokenFile(tmp_path / "b.api" / "tokens").add("eve", "admin", "e")
    file.path.parent.mkdir()
    file.path.symlink_to(tmp_path / "b.api" / "tokens")
    assert file.find("e") is None
    assert file.trouble


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_gives_nobody_access(file, kind):
    """And nobody waits for it."""
    file.path.parent.mkdir()
    if kind == "folder":
        file.path.mkdir()
    elif hasattr(os, "mkfifo"):
        os.mkfifo(file.path, 0o600)
    assert file.find("a") is None


@given(st.binary(max_size=300))
def test_whatever_the_file_holds_is_tokens_or_trouble(tmp_path_factory, data):
    """A file that was cut or edited gives nobody access by mistake."""
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_bytes(data)
    path.chmod(0o600)
    try:
        tokens, trouble = read_tokens(path), ""
    except TokensUnfit as exc:
        tokens, trouble = (), str(exc)
    assert "timerqueue token add" in trouble or not trouble
    assert all(each.scope in {"read", "operate", "admin"} for each in tokens)


def test_every_token_is_compared_whole(monkeypatch):
    """In constant time, and also those behind the right one: the time of an answer tells nothing."""
    compared = []

    def compare(a, b):
        compared.append((len(a), len(b)))
        return a == b

    monkeypatch.setattr("uptime_agent.api.tokens.hmac.compare_digest", compare)
    tokens = tuple(Token(f"t{number}", "read", digest_of(str(number))) for number in range(5))
    assert found(tokens, "0").name == "t0"
    assert found(tokens, "none") is None
    assert compared == [(64, 64)] * 10


def test_commands_that_write_at_once_lose_nothing(file):
    """Each reads what the one before has written."""
    threads = [
        threading.Thread(target=TokenFile(file.path).add, args=(f"t{number}", "read", str(number)))
        for number in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert {each.name for each in file.tokens} == {f"t{number}" for number in range(8)}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_root_writes_no_file_that_the_agent_cannot_read(file):
    """`sudo timerqueue token add` would take all tokens from an agent of another user. It says as whom to do it."""
    file.path.parent.mkdir(mode=0o700)
    os.chown(file.path.parent, 65_534, 65_534)
    with pytest.raises(TokensUnfit, match=r"belongs to user 65534: do this as that user"):
        file.add("ann", "read", "a")
    assert not file.path.exists()


@posix
def test_a_folder_that_somebody_keeps_locked_is_an_error(file, monkeypatch):
    """Any user that may read the folder can lock it. A command that takes a token back does not wait forever."""
    monkeypatch.setattr("uptime_agent.web.sockets.LOOKS", 2)
    file.add("ann", "read", "a")
    with held(file.path.parent), pytest.raises(TokensUnfit, match=r"cannot write tokens into .*: .*busy"):
        file.revoke("ann")
    file.revoke("ann")
    assert file.tokens == ()
