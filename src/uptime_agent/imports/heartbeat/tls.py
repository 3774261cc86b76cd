"""A monitor's `ssl` settings."""

from __future__ import annotations

from typing import Final

from ..foreign import Draft, ForeignTable

_OURS: Final = {"TLSv1.2": "1.2", "TLSv1.3": "1.3"}


def take_tls(draft: Draft, monitor: ForeignTable) -> None:
    """Take over how certificates are verified. The caller notes the rest."""
    ssl = monitor.table("ssl")
    mode = ssl.text("verification_mode", "full")
    if mode == "none":
        draft.put("verify", value=False, line=ssl.line_of("verification_mode"))
    elif mode not in {"full", "strict"}:
        draft.leave(
            f"ssl.verification_mode {mode}: certificates are looked at in full here", ssl.line_of("verification_mode")
        )
    authorities = ssl.texts("certificate_authorities")
    if len(authorities) == 1 and "\n" not in authorities[0]:
        draft.put("ca_file", authorities[0], ssl.line_of("certificate_authorities"))
    elif authorities:
        draft.leave("ssl.certificate_authorities: ca_file is one file", ssl.line_of("certificate_authorities"))
    protocols = ssl.texts("supported_protocols")
    line = ssl.line_of("supported_protocols")
    for each in [each for each in protocols if each not in _OURS]:
        draft.leave(f"ssl.supported_protocols {each}: 1.2 is the oldest here", line)
    if protocols == ["TLSv1.3"]:
        draft.put("min_tls", "1.3", line)
    elif protocols and "TLSv1.3" not in protocols:
        draft.leave("ssl.supported_protocols without TLSv1.3: there is no newest here", line)


def is_tls(monitor: ForeignTable) -> bool:
    """Whether a tcp monitor begins with TLS."""
    return "ssl" in monitor and monitor.table("ssl").flag("enabled", default=True)
