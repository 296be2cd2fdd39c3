"""TLS 1.3 between the parts of a run; each part proves that it has the run's key.

The private key of a certificate authority, which exists only for this run, is derived from the
run's key. Each process derives it and issues itself a certificate, which is used as long as the
process lives. Both sides require a certificate of this authority, so a peer without the run's key
cannot complete a handshake. The rest (encryption, integrity, order, no replay) is TLS 1.3 of
OpenSSL, without session tickets, early data, older versions and other authorities.

A server's certificate contains its role and ports. A client therefore refuses a connection that is
diverted to another part of the run, or back to itself.
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
    """The name of a master or slave in its certificate, for a port to which clients connect."""
    return f"{role}-{port}.ding.invalid"


@lru_cache(maxsize=8)
def client_context(key: str) -> ssl.SSLContext:
    """The cached TLS context with which this process connects to parts of a run."""
    return _context(key, ssl.PROTOCOL_TLS_CLIENT, ())


def server_context(key: str, role: str, ports: Iterable[int]) -> ssl.SSLContext:
    """The TLS context with which a master or slave accepts connections at these ports."""
    names = [server_name(role, port) for port in ports]
    context = _context(key, ssl.PROTOCOL_TLS_SERVER, names)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0  # no resumption; clients would mistake a ticket for an early answer
    return context


def _context(key: str, protocol: int, names: list[str] | tuple[()]) -> ssl.SSLContext:
    from ._certificates import Authority  # slow to import, and many processes do not need it

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
    """Load a certificate and its private key through pipes: `ssl` only reads files, and the secret
    must not be written to a disk."""
    ends = []
    try:
        for content in (certificate, secret):
            reader, writer = os.pipe()
            ends.append(reader)
            with os.fdopen(writer, "wb") as file:
                file.write(content)  # much smaller than a pipe's buffer
        context.load_cert_chain(*(f"/dev/fd/{end}" for end in ends))
    finally:
        for end in ends:
            os.close(end)


def is_strangers(error: OSError) -> bool:
    """Whether a handshake failed because the peer has no certificate of the run, or no TLS 1.3.

    False for a connection that ended, timed out or was damaged: its peer may be part of the run.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return True
    reason = getattr(error, "reason", None) or ""
    return any(word in reason for word in ("CERTIFICATE", "UNKNOWN_CA", "VERSION", "PROTOCOL"))


def cause_of(error: OSError) -> str:
    """The reason why a handshake failed."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    return str(getattr(error, "reason", None) or error).replace("_", " ").lower()


class _Bounded(socket.socket):
    _deadline: float | None = None
    _allowance: int | None = None
    _left = 0

    def allow(self, size: int) -> None:
        """Limit the bytes received after this call, and after each later `settimeout`."""
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
        """Limit the next call to the remaining time."""
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            super().settimeout(left)


class DeadlineSocket(_Bounded):
    """A connected socket whose timeout applies to all receiving until it is set again.

    The timeout of a plain socket restarts with every byte. Receiving more bytes than `allow`
    permits raises an `OSError`.
    """

    @classmethod
    def of(cls, plain: socket.socket) -> "DeadlineSocket":
        """Convert a socket, and keep its timeout; the given socket object is detached."""
        timeout = plain.gettimeout()
        taken = cls(plain.family, plain.type, plain.proto, fileno=plain.detach())
        taken.settimeout(timeout)
        return taken


class DeadlineTlsSocket(_Bounded, ssl.SSLSocket):
    """A `DeadlineSocket` with TLS, created by `ssl.SSLContext.wrap_socket`.

    `allow` counts decrypted bytes. The timeout also applies to all sending: `ssl.SSLSocket` sends
    record by record, each with a separate timeout.
    """

    def send(self, *args: Any, **kwargs: Any) -> int:
        self._limit()
        return super().send(*args, **kwargs)

    def shutdown(self, how: int) -> None:
        """Shut down the connection below TLS.

        `ssl.SSLSocket.shutdown` also drops the encryption: data that another thread sends
        afterwards would be sent as plain text.
        """
        socket.socket.shutdown(self, how)
