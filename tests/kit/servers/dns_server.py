"""A server of names for tests: it answers what it is told to, over UDP and TCP, with dnspython's own messages."""

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


class Zone:
    """What a server answers, by name and type. `faults` change an answer before it is sent."""

    def __init__(self, records=None, *, rcode="NOERROR", truncated_over_udp=False):
        self.records = records or {}
        self.rcode = rcode
        self.truncated_over_udp = truncated_over_udp
        self.questions = []
        self.transports = []

    def answer(self, data, *, is_datagram=True):
        """Answer a message with a message."""
        query = dns.message.from_wire(data)
        (asked,) = query.question
        self.questions.append(asked.to_text())
        self.transports.append("udp" if is_datagram else "tcp")
        response = dns.message.make_response(query)
        response.set_rcode(dns.rcode.from_text(self.rcode))
        for name, kind, *texts in self.records:
            if name == asked.name.to_text() or kind == "CNAME":
                response.answer.append(dns.rrset.from_text(name, 60, "IN", kind, *texts))
        if is_datagram and self.truncated_over_udp:
            response.answer.clear()
            response.flags |= dns.flags.TC
        return response.to_wire(max_size=65_535)

    def replies(self, data):
        """Answer a datagram, as the public suite asks for it."""
        yield self.answer(data)

    async def over_tcp(self, stream):
        """Answer one question over TCP."""
        received = b""
        while len(received) < 2 or len(received) < 2 + int.from_bytes(received[:2], "big"):
            received += await stream.receive()
        answer = self.answer(received[2:], is_datagram=False)
        await stream.send(len(answer).to_bytes(2, "big") + answer)
