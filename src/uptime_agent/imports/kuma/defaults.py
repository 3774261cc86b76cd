"""Kuma's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..foreign import ForeignTable, Items, Mapped

BOOKKEEPING: Final = frozenset(
    ("id user_id weight path pathName childrenIDs dns_last_result maintenance includeSensitiveData screenshot").split()
)
"""Keys that say nothing about checks."""

_SILENT: Final[Mapping[str, tuple[Any, ...]]] = {
    "method": ("GET",),
    "maxredirects": (10,),
    "accepted_statuscodes": (),
    "dns_resolve_type": ("A",),
    "dns_resolve_server": ("1.1.1.1",),
    "packetSize": (56,),
    "ping_count": (1,),
    "ping_numeric": (True,),
    "ping_per_request_timeout": (2,),
    "httpBodyEncoding": ("json",),
    "jsonPathOperator": ("==",),
    "jsonPath": ("$",),
    "mqttCheckType": ("keyword",),
    "snmpVersion": ("2c", "1"),
    "kafkaProducerAllowAutoTopicCreation": (True,),
    "gamedigGivenPortOnly": (True,),
    "smtpSecurity": ("nostarttls",),
    "saveErrorResponse": (True,),
    "responseMaxLength": (1024, 10240),
    "protocol": ("tcp",),
    "port": (53,),
    "url": ("https://", "http://"),
    "retryInterval": (60,),
    "timeout": (48,),
    "active": (True, 1),
    "basic_auth_user": (),
}
_EMPTY: Final = (False, 0, "", "{}", "[]", "null", "none")


def tell_rest(table: ForeignTable) -> None:
    """Note untaken keys with other values."""
    for key, value in table.of.values.items():
        if _is_empty(value):
            table.take(key)
    table.rest({**_SILENT, **{key: (table.of.values.get(key),) for key in BOOKKEEPING}})


def _is_empty(value: Any) -> bool:
    if isinstance(value, (Mapped, Items)):
        return not value.values
    return any(type(value) is type(each) and value == each for each in _EMPTY)
