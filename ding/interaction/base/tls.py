"""TLS 1.3 between the parts of a run, each of which proves that it has the run's key.

The run's key gives the private key of a certificate authority that exists for this run alone. Each
process derives it and issues itself a certificate that lives as long as the process. Both sides
demand a certificate of that authority, so a peer without the run's key completes no handshake.
The rest (encryption, integrity, order, no replay) is TLS 1.3 as OpenSSL implements it: no session
tickets, no early data, no older version, no other authority.

A server's certificate names its role and ports. Traffic that is diverted to another part of the
run, or back to its sender, is refused by the client.
"""

import os
import socket
import ssl
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

#: First byte of a TLS connection: the content type of a handshake record.
HANDSHAKE_BYTE = b"\x16"


def server_name(role: str, port: int) -> str:
    """What the certificate of a master or slave calls it, at the port that clients dial."""
    return f"{role}-{port}.ding.invalid"


@lru_cache(maxsize=8)
def client_context(key: str) -> ssl.SSLContext:
    """What this process dials the parts of a run with; the same each time."""
    return _context(key, ssl.PROTOCOL_TLS_CLIENT, ())


def server_context(key: str, role: str, ports: Iterable[int]) -> ssl.SSLContext:
    """What one master or slave accepts connections with, at the ports that clients dial."""
    names = [server_name(role, port) for port in ports]
    context = _context(key, ssl.PROTOCOL_TLS_SERVER, names)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # nothing is resumed; a client would also take one for an early answer
    return context


def _context(key: str, protocol: int, names: list[str] | tuple[()]) -> ssl.SSLContext:
    from ._certificates import Authority  # slow to import, and many processes need none

    authority = Authority(key)
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.load_verify_locations(cadata=authority.certificate())
    secret, certificate = authority.issue(names)
    load_from_memory(context, certificate, secret)
    context.sslsocket_class = DeadlineTlsSocket
    return context


def load_from_memory(context: ssl.SSLContext, certificate: bytes, secret: bytes) -> None:
    """Load a certificate and its private key, which `ssl` reads from files only: from pipes, so
    that no secret reaches a disk."""
    ends = []
    try:
        for content in (certificate, secret):
            reader, writer = os.pipe()
            ends.append(reader)
            with os.fdopen(writer, "wb") as file:
                file.write(content)  # much less than a pipe holds
        context.load_cert_chain(*(f"/dev/fd/{end}" for end in ends))
    finally:
        for end in ends:
            os.close(end)


def is_strangers(error: OSError) -> bool:
    """Whether a handshake failed because the peer has no certificate of the run, or no TLS 1.3.

    A connection that just ends, takes too long or was damaged may be one of the run.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    reason = getattr(error, "reason", None) or ""
    return any(word in reason for word in ("CERTIFICATE", "UNKNOWN_CA", "VERSION", "PROTOCOL"))


def cause_of(error: OSError) -> str:
    """A description of why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    return str(getattr(error, "reason", None) or error).replace("_", " ").lower()


class _Bounded(socket.socket):
    _deadline: float | None = None
    _allowance: int | None = None
    _left = 0

    def allow(self, size: int) -> None:
        """Bound the bytes that may come until the timeout is set again, now and each time."""
        self._allowance = self._left = size

    def settimeout(self, value: float | None) -> None:
        super().settimeout(value)
        self._deadline = None if value is None else time.monotonic() + value
        self._left = self._allowance or 0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        self._limit()
        size = super().recv_into(*args, **kwargs)
        if self._allowance is not None:
            self._left -= size
            if self._left < 0:
                raise OSError(f"more than {self._allowance} bytes came")
        return size

    def _limit(self) -> None:
        """Allow the next call only the time that is left."""
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            super().settimeout(left)


class DeadlineSocket(_Bounded):
    """A connected socket whose timeout is for all that is received until it is set again.

    The timeout of a plain socket begins again with every byte. Receiving more than `allow` has
    allowed since then is an `OSError`.
    """

    @classmethod
    def of(cls, plain: socket.socket) -> "DeadlineSocket":
        """Take over a socket, with its timeout; the one that is given is closed."""
        timeout = plain.gettimeout()
        taken = cls(plain.family, plain.type, plain.proto, fileno=plain.detach())
        taken.settimeout(timeout)
        return taken


class DeadlineTlsSocket(_Bounded, ssl.SSLSocket):
    """The same with TLS; made by `ssl.SSLContext.wrap_socket`. `allow` counts what was encrypted.

    Sending has the same bounds: `ssl.SSLSocket` sends record by record, each with its own timeout.
    """

    def send(self, *args: Any, **kwargs: Any) -> int:
        self._limit()
        return super().send(*args, **kwargs)

    def shutdown(self, how: int) -> None:
        """End the connection below TLS.

        `ssl.SSLSocket.shutdown` also forgets the encryption: what another thread sends afterwards
        would leave as plain text.
        """
        socket.socket.shutdown(self, how)
