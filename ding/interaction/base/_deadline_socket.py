"""Sockets on which a whole exchange has bounds, however slowly or much its peer sends."""

import socket
import ssl
import time
from typing import Any


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
