"""Where a server listens: a Unix socket is its user's alone, whatever lies there."""

import os
import socket
import stat

import pytest

from uptime_agent.web import NotListening, forget, listen_at
from uptime_agent.web.sockets import LONGEST_PATH, uid_of

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")


@pytest.fixture
def path(tmp_path):
    """Return a path in a folder that is not there yet."""
    return tmp_path / "a.api" / "socket"


def mode_of(path):
    """Return the rights of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_its_user_can_reach_a_socket(path, umask):
    """Whatever the umask is."""
    before = os.umask(umask)
    try:
        listener = listen_at(path)
    finally:
        assert os.umask(before) == umask
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)
    forget(listener)
    assert not path.exists()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_may_write_to_is_refused(path, mode):
    """Who writes there could put a socket of his own in the place of ours."""
    path.parent.mkdir()
    path.parent.chmod(mode)
    with pytest.raises(NotListening, match="chmod 700"):
        listen_at(path)
    assert not path.exists()


def test_a_folder_that_is_a_link_is_refused(path, tmp_path):
    """It may lead anywhere tomorrow."""
    (tmp_path / "real").mkdir()
    path.parent.symlink_to(tmp_path / "real")
    with pytest.raises(NotListening, match="is no folder"):
        listen_at(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root to give a folder away")
def test_a_folder_of_another_user_is_refused(path):
    """That user may rename what is in it."""
    path.parent.mkdir(mode=0o700)
    os.chown(path.parent, 12_345, 12_345)
    listener = None
    try:
        with pytest.raises(NotListening, match="belongs to another user"):
            listener = listen_at(path)
    finally:
        if listener is not None:
            forget(listener)


def test_a_socket_that_nobody_listens_at_is_replaced(path):
    """An agent that was killed leaves one."""
    left = listen_at(path)
    left.close()
    assert path.exists()
    forget(listen_at(path))


def test_a_socket_that_somebody_listens_at_stays(path):
    """Else a second agent would take the first one's callers away."""
    first = listen_at(path)
    with pytest.raises(NotListening, match="another agent listens there"):
        listen_at(path)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
    forget(first)


def test_a_file_in_its_place_is_left_alone(path):
    """It may be anybody's."""
    path.parent.mkdir()
    path.write_text("mine")
    with pytest.raises(NotListening, match="no socket"):
        listen_at(path)
    assert path.read_text() == "mine"


def test_a_path_that_is_too_long_is_told_with_its_length(tmp_path):
    """The system's own words name neither the path nor the bound."""
    with pytest.raises(NotListening, match=f"at most {LONGEST_PATH}"):
        listen_at(tmp_path / ("x" * 120))


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    """With the reason."""
    with pytest.raises(NotListening, match="no such file or directory"):
        listen_at(tmp_path / "a" / "b" / "socket")


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="this system does not tell who connects")
def test_the_user_at_the_other_end_is_known(path):
    """The kernel says it, and not the other end."""
    listener = listen_at(path)
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(path))
        accepted, _ = listener.accept()
        with accepted:
            assert uid_of(accepted) == os.geteuid()
    forget(listener)
