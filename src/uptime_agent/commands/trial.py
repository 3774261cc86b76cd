"""The trial of a channel."""

from __future__ import annotations

import anyio

from timerqueue import SystemClock

from ..checks import Resolver
from ..config import Config
from ..logs import log_to_stderr
from ..notify import ChannelDeps, Undelivered, sent_test
from ..text import Redactor
from ..toml import suggestion


def tried(config: Config, channel: str, verbosity: int) -> tuple[str, int]:
    """Send a test message. Returns its result, and 0: delivered, 1: refused, 2: no such channel."""
    way = config.channels.get(channel)
    if way is None:
        return f"there is no [[channel]] {channel!r} in it{suggestion(channel, config.channels)}", 2
    redactor = Redactor(config.secrets)
    log_to_stderr(verbosity, redactor)
    about = f"channel {channel} ({way.channel.kind} to {way.channel.place})"
    means = ChannelDeps(Resolver(config.hosts), SystemClock())
    try:
        remark = anyio.run(sent_test, channel, way, means, redactor.clean)
    except Undelivered as exc:
        return f"{about} has not taken the test message: {exc}", 1
    return f"{about} has taken the test message{f'; {redactor.clean(remark)}' if remark else ''}", 0
