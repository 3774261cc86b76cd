"""The channel `email`: SMTP, with TLS by default.

`smtplib` waits in a thread. No text of a target can add a header or a recipient.
"""

from __future__ import annotations

# ruff: noqa: PLC0415 - the libraries for mail are large, and imported once something is mailed
import enum
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import field, frozen

from ...checks import certificates, judge
from ...text import host_name, our_version, printable
from ...toml import Option, Reader, Secret, Unfit, boolean, one_of, secret, text, whole
from .channel import ChannelDeps, ChannelKind, Surroundings, Undelivered
from .notification import Notification
from .threads import in_thread

if TYPE_CHECKING:
    import smtplib
    from email.message import EmailMessage

MOST_RECIPIENTS: Final = 50
LONGEST_ADDRESS: Final = 254
_READY: Final = 220
OPERATION: Final = 10.0
"""Seconds for one answer."""

HIGHEST_PORT: Final = 65_535
SHOWN: Final = 200
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")

_HOST: Final = re.compile(r"[A-Za-z0-9._:-]+")


class Encryption(enum.Enum):
    """How the connection is encrypted."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


_PORTS: Final = {Encryption.STARTTLS: 587, Encryption.TLS: 465, Encryption.NONE: 25}


@frozen(kw_only=True)
class Email:
    """A channel that sends e-mail. `port` None: the encryption's."""

    kind: ClassVar[str] = "email"

    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int | None = None
    encryption: Encryption = Encryption.STARTTLS
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    verify: bool = True

    def __attrs_post_init__(self) -> None:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password belong together: give both, or neither")
        if self.password is not None and self.encryption is Encryption.NONE:
            raise ValueError('a password needs tls = "starttls" or "tls": it would go over the network as it is')

    @property
    def place(self) -> str:
        """The server and its port."""
        return f"{self.host}:{_PORTS[self.encryption] if self.port is None else self.port}"

    @property
    def secrets(self) -> frozenset[str]:
        """The password, and texts given by reference."""
        given = {each for each in (self.username, self.password) if isinstance(each, Secret)}
        return frozenset(given | ({self.password} if self.password else set()))

    async def send(self, notification: Notification, means: ChannelDeps) -> str | None:
        """Send the message. One accepted recipient is enough; the remark names the others."""
        message = self.written(notification, means.clock.wall())
        session = _Session(self, message)
        refused = await in_thread((notification.channel, self), session.run, session.give_up)
        return f"not accepted: {', '.join(map(printable, refused))}" if refused else None

    def written(self, notification: Notification, now: float) -> EmailMessage:
        """The message. `now`: UTC seconds."""
        from email.message import EmailMessage
        from email.policy import SMTP
        from email.utils import format_datetime

        message = EmailMessage(policy=SMTP)
        message["From"] = self.sender
        message["To"] = ", ".join(self.recipients)
        message["Subject"] = f"[timerqueue] {notification.subject}"
        message["Date"] = format_datetime(datetime.fromtimestamp(now, UTC))
        message["Message-ID"] = f"<{sha256(notification.key.encode()).hexdigest()[:32]}@timerqueue>"
        message["X-Idempotency-Key"] = notification.key
        message["Auto-Submitted"] = "auto-generated"
        message["User-Agent"] = f"timerqueue/{our_version()}"
        message.set_content(f"{notification.text}\n")
        return message


class _Session:
    """A conversation with the server, in a thread."""

    def __init__(self, email: Email, message: EmailMessage) -> None:
        self._email = email
        self._message = message
        self._server: smtplib.SMTP | None = None

    def run(self) -> Mapping[str, Any]:
        """Return refused recipients. Raises Undelivered."""
        import smtplib

        email = self._email
        try:
            with self._connected() as self._server:
                if email.encryption is Encryption.STARTTLS:
                    self._server.starttls(context=self._context())
                if email.username is not None and email.password is not None:
                    self._server.login(email.username, email.password)
                return self._server.send_message(self._message, email.sender, list(email.recipients))
        except smtplib.SMTPRecipientsRefused as exc:
            (_, said), *_ = exc.recipients.values()
            raise Undelivered(f"{email.place} accepted no recipient: {_shown(said)}") from None
        except smtplib.SMTPResponseException as exc:
            raise Undelivered(f"{email.place} answered {exc.smtp_code}: {_shown(exc.smtp_error)}") from None
        except (smtplib.SMTPException, OSError) as exc:
            trouble = None if isinstance(exc, smtplib.SMTPException) else judge(exc, email.place)
            raise Undelivered(f"{email.place}: {_shown(str(exc))}" if trouble is None else trouble.text) from None

    def give_up(self) -> None:
        """In the loop's thread: waits for the server fail at once."""
        connection = None if self._server is None else self._server.sock
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> smtplib.SMTP:
        """`give_up` works before the server's first word."""
        import smtplib

        from .smtp import Encrypted, PlainSmtp

        email, name = self._email, socket.gethostname()
        if email.encryption is Encryption.TLS:
            server: smtplib.SMTP = Encrypted("", 0, name, timeout=OPERATION, context=self._context())
        else:
            server = PlainSmtp("", 0, name, timeout=OPERATION)
        vars(server)["_host"] = (
            email.host
        )  # whose certificate it is; there is no other way to say it before it connects
        self._server = server
        code, said = server.connect(email.host, _PORTS[email.encryption] if email.port is None else email.port)
        if code != _READY:
            server.close()
            raise smtplib.SMTPConnectError(code, said)
        return server

    def _context(self) -> Any:
        return certificates.of_system() if self._email.verify else certificates.of_nobody()


def _shown(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return printable(" ".join(text.split())[:SHOWN])


def address(value: Any) -> str:
    """Read an e-mail address."""
    found = text(value)
    if len(found) > LONGEST_ADDRESS or not _ADDRESS.fullmatch(found):
        raise Unfit("an address such as ops@example.org", value)
    return found


def _addresses(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not 1 <= len(items) <= MOST_RECIPIENTS:
        raise Unfit(f'up to {MOST_RECIPIENTS} addresses, as in ["ops@example.org"]', value)
    return tuple(address(each) for each in items)


def _host(value: Any) -> str:
    try:
        found = host_name(text(value))
    except ValueError as exc:
        raise Unfit(str(exc), value) from None
    if not _HOST.fullmatch(found):
        raise Unfit("a host such as mail.example.org", value)
    return found


def _options(around: Surroundings) -> dict[str, Reader[Any]]:
    read = secret(around.folder, around.environment)
    return {
        "host": Option(_host, "the SMTP server"),
        "from": Option(address, "the address of the sender"),
        "to": Option(_addresses, "the address of the recipient, or a list of at most 50"),
        "tls": Option(
            one_of({each.value: each for each in Encryption}),
            'how the connection is encrypted. With `"none"` there can be no password',
            "starttls",
        ),
        "port": Option(whole(1, HIGHEST_PORT), "the server's port. By default 587, 465 or 25, as `tls` says"),
        "username": Option(read, "who we are there. Belongs to `password`"),
        "password": Option(read, "belongs to `username`"),
        "verify": Option(boolean, "whether to check the certificate", True),  # noqa: FBT003 - the default
    }


_NAMES: Final = {"from": "sender", "to": "recipients", "tls": "encryption"}


def _email(**options: Any) -> Email:
    return Email(**{_NAMES.get(name, name): value for name, value in options.items()})


EMAIL: Final = ChannelKind("email", _email, _options, ("host", "from", "to"), "sends e-mail over SMTP")
