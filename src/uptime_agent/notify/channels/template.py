"""Templates of webhooks: known names in braces are replaced by text that is escaped for JSON, and by nothing else.

There are no expressions and no attributes, and what is put in is not looked at again. So what a target says, in a name
or in an error, cannot reach beyond the text in which it stands.
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
"""Something in braces that looks like a name. JSON itself has a quotation mark, a brace or nothing there."""


@frozen
class Template:
    """A text of JSON with names in braces."""

    text: str

    def render(self, notification: Notification) -> str:
        """Put the values of a notification in the place of their names."""
        names = notification.names()
        return _NAME.sub(lambda found: _escaped(names[found[1]]), self.text)


def template(value: Any) -> Template:
    """Read a template: it names what there is, and is JSON once the names are replaced."""
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
