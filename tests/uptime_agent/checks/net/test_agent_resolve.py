"""From names to addresses, and when a failure is ours."""

import socket

import pytest

from uptime_agent.checks.contract.result import Status
from uptime_agent.checks.net import resolve
from uptime_agent.checks.net.resolve import Family, Resolver, Unresolved

MISSING = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
FAILING = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


class Names:
    """A lookup that answers from a table, which tests change."""

    def __init__(self, **answers):
        self.answers = {f"{name}.test": answer for name, answer in answers.items()}
        self.asked = []

    async def __call__(self, host):
        self.asked.append(host)
        answer = self.answers[host]
        if isinstance(answer, OSError):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (Family.ANY, ["::1", "127.0.0.1", "fe80::1%lo"]),
        (Family.V4, ["127.0.0.1"]),
        (Family.V6, ["::1", "fe80::1%lo"]),
    ],
)
async def test_addresses_come_in_order_and_once(family, expected):
    """The system's order is kept, and what is not of the family left out."""
    names = Names(a=["::1", "127.0.0.1", "::1", "fe80::1%lo"])
    assert await Resolver(lookup=names).addresses("a.test", family) == expected


async def test_names_are_looked_up_each_time():
    """An address that has changed is noticed by the next check."""
    names = Names(a=["127.0.0.1"])
    resolver = Resolver(lookup=names)
    await resolver.addresses("a.test")
    names.answers["a.test"] = ["127.0.0.2"]
    assert await resolver.addresses("a.test") == ["127.0.0.2"]


async def test_fixed_answers_and_addresses_need_no_lookup():
    """[hosts] is asked first, and an address is its own answer."""
    names = Names()
    resolver = Resolver({"a.test": ("127.0.0.9",)}, names)
    assert await resolver.addresses("a.test") == ["127.0.0.9"]
    assert await resolver.addresses("::1") == ["::1"]
    assert names.asked == []


@pytest.mark.parametrize(
    ("error", "control", "status", "text"),
    [
        (MISSING, None, Status.DOWN, "cannot look up a.test: name or service not known"),
        (MISSING, ["127.0.0.1"], Status.DOWN, "cannot look up a.test: name or service not known"),
        (FAILING, ["127.0.0.1"], Status.DOWN, "cannot look up a.test: temporary failure in name resolution"),
        (FAILING, None, Status.UNKNOWN, "cannot look up a.test: temporary failure in name resolution"),
        (FAILING, FAILING, Status.UNKNOWN, "this machine is offline: it can look up neither a.test nor control.test"),
        (MISSING, MISSING, Status.UNKNOWN, "this machine is offline: it can look up neither a.test nor control.test"),
    ],
)
async def test_a_failed_lookup_is_the_names_fault_only_if_others_work(error, control, status, text):
    """A name that worked before is asked as a control. `control` None: none has worked yet."""
    names = Names(a=error, control=["127.0.0.1"])
    resolver = Resolver(lookup=names)
    if control is not None:
        await resolver.addresses("control.test")
        names.answers["control.test"] = control
    with pytest.raises(Unresolved, match=text) as caught:
        await resolver.addresses("a.test")
    assert caught.value.status is status


async def test_a_machine_without_descriptors_cannot_look_up(monkeypatch):
    """The system's lookup then fails for reasons that sound like the name's fault."""
    monkeypatch.setattr(resolve, "out_of_descriptors", lambda: True)
    with pytest.raises(Unresolved, match="ran out of file descriptors") as caught:
        await Resolver(lookup=Names(a=MISSING)).addresses("a.test")
    assert caught.value.status is Status.UNKNOWN


async def test_the_system_knows_localhost():
    """The real lookup, in its thread."""
    assert "127.0.0.1" in await Resolver().addresses("localhost", Family.V4)
