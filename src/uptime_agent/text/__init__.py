"""Text that comes from outside or goes to people: URLs, secrets in them, and words for numbers, lengths and instants.

Offers `Url` and what reads one, `Redactor`, which masks secrets in all that is shown or logged, `wording`, and the next
starts of a schedule in words. Knows no target and no check, only text and values: who has secrets, and where they are
shown, is said by others. Pure: may be called on any thread, as logging does.
"""

from __future__ import annotations

from . import wording
from .redact import RedactingFormatter, Redactor, basic_credentials, secrets_of
from .starts import schedule_lines, starts
from .url import Url, address_family, host_name, is_address, masked, parse_url, secrets_in, sounds_secret
from .version import our_version
from .wording import harmless, printable

__all__ = [
    "RedactingFormatter",
    "Redactor",
    "Url",
    "address_family",
    "basic_credentials",
    "harmless",
    "host_name",
    "is_address",
    "masked",
    "our_version",
    "parse_url",
    "printable",
    "schedule_lines",
    "secrets_in",
    "secrets_of",
    "sounds_secret",
    "starts",
    "wording",
]
