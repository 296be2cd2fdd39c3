"""A socket on which a whole exchange has bounds, however slowly or much its peer sends."""

import socket
import time
from typing import Any


class DeadlineSocket(socket.socket):
    """A connected socket whose timeout is for all that is received until it is set again.

    The timeout of a plain socket begins anew with every byte. Receiving more than `allow` has
    allowed since then is an `OSError`.
    """

    _deadline: float | None = None
    _allowance: int | None = None
    _left = 0

    @classmethod
    def of(cls, plain: socket.socket) -> "DeadlineSocket":
        """Take over a socket, with its timeout; the one that is given is closed."""
        timeout = plain.gettimeout()
        taken = cls(plain.family, plain.type, plain.proto, fileno=plain.detach())
        taken.settimeout(timeout)
        return taken

    def allow(self, size: int) -> None:
        """Bound the bytes that may come until the timeout is set again, now and each time."""
        self._allowance = self._left = size

    def settimeout(self, value: float | None) -> None:
        super().settimeout(value)
        self._deadline = None if value is None else time.monotonic() + value
        self._left = self._allowance or 0

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            super().settimeout(left)
        size = super().recv_into(*args, **kwargs)
        if self._allowance is not None:
            self._left -= size
            if self._left < 0:
                raise OSError(f"more than {self._allowance} bytes came")
        return size
