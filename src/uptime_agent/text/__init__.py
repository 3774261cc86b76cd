"""Text that comes from outside or goes to people: URLs, their secrets, and words for numbers, times and instants.

Offers `Url` and its parser, `Redactor`, which masks secrets in everything shown or logged, `wording`, and the next
starts of a schedule in words. Knows no target or check. Pure: any thread, as logging does.
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
