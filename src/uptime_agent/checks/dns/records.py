"""Types of records. Imports nothing slow."""

from __future__ import annotations

from typing import Final

RECORDS: Final = tuple("A AAAA CAA CNAME DNSKEY DS HTTPS MX NAPTR NS PTR SOA SPF SRV SSHFP SVCB TLSA TXT".split())
