"""TLS contexts, made once: reading certificates takes long."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Mapping
from functools import cache
from ssl import TLSVersion
from typing import Any, Final

from ...toml import Option, Reader, Unfit, boolean, one_of, seconds, text

LEAST: Final = TLSVersion.TLSv1_2
"""The oldest version, whatever the machine allows."""


@cache
def of_system(least: TLSVersion = LEAST) -> ssl.SSLContext:
    """Trust this machine's authorities."""
    if sys.platform == "darwin":  # whose OpenSSL knows nothing of the keychain
        import truststore  # noqa: PLC0415 - it is there on macOS only

        return _from(least, truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    return _from(least, ssl.create_default_context())


@cache
def of_nobody(least: TLSVersion = LEAST) -> ssl.SSLContext:
    """Verify no certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _from(least, context)


@cache
def of_file(ca_file: str, least: TLSVersion = LEAST) -> ssl.SSLContext:
    """Trust a PEM file's certificates. Raises OSError; ValueError for an impossible name."""
    return _from(least, ssl.create_default_context(cafile=ca_file))


def context(ca_file: str | None = None, *, verify: bool = True, least: TLSVersion = LEAST) -> ssl.SSLContext:
    """Choose the context for a check's options."""
    if not verify:
        return of_nobody(least)
    return of_system(least) if ca_file is None else of_file(ca_file, least)


def _from(least: TLSVersion, context: ssl.SSLContext) -> ssl.SSLContext:
    context.minimum_version = least
    return context


def ca_file(value: Any) -> str:
    """Read the name of a usable PEM file."""
    try:
        of_file(text(value))
    except OSError as exc:  # ssl.SSLError is one
        raise Unfit(f"a file of certificates in PEM ({exc.strerror or exc})", value) from None
    except ValueError:
        raise Unfit("a file of certificates in PEM (no name of a file holds NUL)", value) from None
    return text(value)


MIN_TLS: Final = Option(
    one_of({"1.2": TLSVersion.TLSv1_2, "1.3": TLSVersion.TLSv1_3}), "the oldest version of TLS that will do", "1.2"
)
CA_FILE: Final = Option(
    ca_file,
    "a file of certificates in PEM, relative to the configuration. By default those that the system trusts count",
)

OPTIONS: Final[Mapping[str, Reader[Any]]] = {
    "verify": Option(
        boolean,
        "whether to check the certificate. If not, the agent says so at each start and in the table, and so does "
        "`timerqueue check`",
        True,  # noqa: FBT003 - the default
    ),
    "ca_file": CA_FILE,
    "cert_expires_within": Option(
        seconds,
        "degraded if the server's certificate, or another of the chain by which it is trusted, expires within that "
        "time. Those of servers that redirect count too",
    ),
}
