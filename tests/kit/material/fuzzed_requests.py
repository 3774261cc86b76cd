"""Requests that were changed in any way: none has a token of a push target, or of a caller of the control API."""

from push_kit import request

PIECES = [
    *(b"\r\n", b"\r\n\r\n", b"\x00", b"\xff\xfe", b" ", b":", b"%", b"?", b"&rid=", b"/push/", b"/fail", b"HTTP/1.1"),
    *(b"Transfer-Encoding: chunked\r\n", b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Host: a\r\n"),
    *(b"Content-Length: 99999999999999999999\r\n", b"Content-Length: -1\r\n", b"ffffffffffffffff\r\n", b"A" * 20_000),
]
SEEDS = [
    request("/push/no-such-token-00"),
    request("/push/no-such-token-00/fail?rid=a&" + "&".join(f"p{n}=1" for n in range(11)), "PUT", b"it went wrong"),
    request("/push/no-such-token-00/3", "GET"),
    request("/push/no-such-token-00/start?rid=%00%ff", "HEAD"),
    request("http://127.0.0.1/push/x", "OPTIONS"),
    request("/push/../../etc/passwd", "GET"),
    b"POST /push/no-such-token-00 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"POST /push/no-such-token-00 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /push/no-such-token-00 HTTP/1.0\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(range(160)),
    request("/push/no-such-token-00") * 3,
]
OF_API = [
    request("/v1/jobs?limit=5&state=running&cursor=x", "GET", b"", "Authorization: Bearer tq_none"),
    request("/v1/jobs/site/pause", "POST", b'{"reason": "x"}', "Content-Type: application/json", "Origin: http://x"),
    request("/v1/jobs/site", "PUT", b'{"task": "check", "schedule": "@every 1s"}', "Content-Type: application/json"),
    request("/v1/jobs/site", "DELETE", b"", "Authorization: Basic bWU6dHFfbm9uZQ==", "Sec-Fetch-Site: cross-site"),
    request("/v1/sets/api", "PUT", b'{"jobs": []}', "X-Forwarded-User: ann", "Cookie: token=tq_none"),
    request("/healthz", "GET", b"", "Upgrade: websocket", "Connection: Upgrade"),
    b"PUT /v1/jobs/site HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"DELETE /v1/jobs/site HTTP/1.0\r\nHost: localhost\r\n\r\n",
    *SEEDS,
]


def mutated(draw, seeds=SEEDS):
    """Return a request that has been changed in some places, and in which pieces it is sent."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(0, 4)):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(5):
            case 0:
                data[at : at + 1] = bytes([draw.randrange(256)])
            case 1:
                del data[at : at + draw.randint(1, 40)]
            case 2:
                data[at:at] = draw.choice(PIECES)
            case 3:
                data[at:at] = data[at : at + draw.randint(1, 60)] * draw.randint(1, 5)
            case 4:
                del data[at:]
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.choice([0, 0, 1, 3])))
    return [bytes(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]
