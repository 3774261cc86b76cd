"""Templates of webhooks: JSON with known names in braces.

Inserted text is escaped and not searched again: a target's name cannot leave its place.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from attrs import frozen

from ...toml import Unfit, suggestion, text
from .notification import Notification, example

_NAME: Final = re.compile(r"\{([a-z_]+)\}")
_STRANGE: Final = re.compile(r"\{\s*([A-Za-z_][^{}\"\s]*)\s*\}")


@frozen
class Template:
    """JSON with names in braces."""

    text: str

    def render(self, notification: Notification) -> str:
        """Replace the names by their values."""
        names = notification.names()
        return _NAME.sub(lambda found: _escaped(names[found[1]]), self.text)


def template(value: Any) -> Template:
    """Read a template: known names, and JSON once replaced."""
    found = text(value)
    known = example().names()
    for each in _STRANGE.finditer(found):
        if each[1] not in known or not _NAME.fullmatch(each[0]):
            raise Unfit(f"names that there are; there is no {each[0]}{suggestion(each[1].lower(), known)}", value)
    made = Template(found)
    for notification in (example(), example(is_resolved=False)):
        try:
            json.loads(made.render(notification))
        except ValueError as exc:
            expected = f"JSON once its names are replaced ({exc}; a name belongs between quotation marks)"
            raise Unfit(expected, value) from None
    return made


def _escaped(value: str) -> str:
    return json.dumps(value)[1:-1]
