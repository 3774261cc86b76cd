"""All kinds of channel."""

from __future__ import annotations

from typing import Final

from .channel import ChannelKind
from .command import COMMAND
from .mail import EMAIL
from .services import APPRISE
from .webhook import WEBHOOK

CHANNELS: Final[dict[str, ChannelKind]] = {kind.name: kind for kind in (WEBHOOK, COMMAND, EMAIL, APPRISE)}
