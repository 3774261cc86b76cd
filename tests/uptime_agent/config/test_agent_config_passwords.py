"""Files that hold the passwords of [[postgres]]."""

import os

import pytest

from uptime_agent.config import read_config
from uptime_agent.toml import ConfigError


@pytest.fixture
def read(tmp_path):
    """Read a configuration with one server, whose password is in a file."""
    file = tmp_path / "fleet.toml"
    file.write_text('[[postgres]]\nhost = "db.example"\npassword = { file = "password" }\n')
    return lambda: read_config(file, {})


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_a_password_lies_in_a_file_with_or_without_a_line_break(read, tmp_path, ending):
    """No editor adds to a password."""
    (tmp_path / "password").write_bytes(b"a secret" + ending.encode())
    assert read().postgres[0].server.password == "a secret"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"x" * 70_000, "a file of at most 64 KiB"),
        (b"", "text in the file password"),
        (b"\n\n", "text in the file password"),
        (b"\xff", "a file of UTF-8"),
    ],
    ids=["too long", "empty", "line breaks", "not UTF-8"],
)
def test_a_file_that_holds_no_password_is_refused(read, tmp_path, content, told):
    """A long one was cut, and the server then refused what was left of it."""
    (tmp_path / "password").write_bytes(content)
    with pytest.raises(ConfigError, match=f":3: .*password: expected {told}"):
        read()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_a_password_is_not_waited_for(read, tmp_path):
    """Reading the configuration had no end."""
    os.mkfifo(tmp_path / "password")
    with pytest.raises(ConfigError, match=r"a file that can be read \(it is a named pipe, and no file\)"):
        read()
