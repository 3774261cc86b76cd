"""A port that is held is given to nobody, refuses whoever comes, and can be listened at by a server of ours."""

import socket
from contextlib import closing

import pytest

from agent_kit import answers, free_port, serve
from held_ports import hold_port, number_of

__all__ = ["answers", "free_port", "serve"]
HOME = ["127.0.0.1", "127.0.0.2", "127.0.0.3"]


def taken_by_another(address, port):
    """Take it as the system gives ports to clients and servers: only if nobody has it."""
    with closing(socket.socket()) as other:
        other.bind((address, port))


def nobody_listens(address, port):
    """Tell whether connections are refused there."""
    with closing(socket.socket()) as client:
        try:
            client.connect((address, port))
        except ConnectionRefusedError:
            return True
        return False


@pytest.mark.parametrize("address", HOME)
def test_a_port_that_is_held_refuses_and_is_nobody_elses(address):
    """At every address of this machine; let go, it is as free as any."""
    with hold_port() as held:
        port = number_of(held)
        assert nobody_listens(address, port)
        with pytest.raises(OSError, match="in use"):
            taken_by_another(address, port)


def test_a_server_of_ours_listens_where_a_port_is_held_and_does_so_again():
    """The other addresses refuse meanwhile."""
    with hold_port() as held:
        port = number_of(held)
        for _ in range(2):
            with socket.create_server((HOME[0], port)):
                assert [nobody_listens(each, port) for each in HOME] == [False, True, True]
            assert nobody_listens(HOME[0], port)


async def test_nobody_else_answers_at_the_port_of_a_server_of_a_test(serve, answers):
    """Tests tell apart by address who was asked. Another test's server, or a client, could have had the same port."""
    server = await serve(answers.closing, host=HOME[2])
    assert [nobody_listens(each, server.port) for each in HOME] == [True, True, False]
    for address in HOME:
        with pytest.raises(OSError, match="in use"):
            taken_by_another(address, server.port)


def test_a_free_port_stays_free(free_port):
    """As long as the test lasts."""
    with pytest.raises(OSError, match="in use"):
        taken_by_another(HOME[1], free_port)
