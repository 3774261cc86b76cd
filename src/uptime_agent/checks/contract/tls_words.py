"""Errors of OpenSSL in our words."""

from __future__ import annotations

import ssl
from typing import Final

_REFUSED: Final = {
    9: "is not valid yet",
    10: "has expired",
    18: "is self-signed",
    19: "is of an authority that is not trusted here (self-signed)",
    20: "is of an authority that is not trusted here",
    21: "is of an authority that is not trusted here",
    23: "has been revoked",
}

_FAILED: Final = {
    "WRONG_VERSION_NUMBER": "it does not speak TLS there",
    "HTTP_REQUEST": "it does not speak TLS there",
    "PACKET_LENGTH_TOO_LONG": "it does not speak TLS there",
    "RECORD_LAYER_FAILURE": "it does not speak TLS there",
    "UNEXPECTED_EOF_WHILE_READING": "it closed the connection in the middle of the handshake",
    "UNSUPPORTED_PROTOCOL": "it speaks old versions of TLS only",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks none of our versions of TLS",
    "TLSV1_UNRECOGNIZED_NAME": "it has no site of that name",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it asks for a certificate of ours",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it has no cipher in common with us, or asks for a certificate of ours",
    "NO_SHARED_CIPHER": "it has no cipher in common with us",
    "DH_KEY_TOO_SMALL": "its key is too short",
    "EE_KEY_TOO_SMALL": "its key is too short",
    "CA_MD_TOO_WEAK": "its certificate is signed in a way that is too weak",
}
_PREFIXES: Final = ("SSLV3_ALERT_", "TLSV1_ALERT_", "TLSV13_ALERT_", "TLSV1_")


def refused(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate is refused."""
    words = _REFUSED.get(error.verify_code)
    if words is not None:
        return words
    said = error.verify_message.rstrip(".")
    marker = "not valid for "
    if marker in said:
        return f"is not valid for {said.rpartition(marker)[2]}"
    return f"refused: {said[:1].lower()}{said[1:]}"


def handshake(error: ssl.SSLError) -> str:
    """Why TLS failed."""
    reason: str = getattr(error, "reason", None) or ""  # not every one of them has it
    if not reason and isinstance(error, ssl.SSLEOFError):
        reason = "UNEXPECTED_EOF_WHILE_READING"
    words = _FAILED.get(reason)
    if words is not None:
        return words
    for prefix in _PREFIXES:
        if reason.startswith(prefix):
            return f'it ended the handshake with "{_plain(reason.removeprefix(prefix))}"'
    return _plain(reason) or "it broke the rules of TLS"


def _plain(reason: str) -> str:
    return reason.replace("_", " ").lower()
