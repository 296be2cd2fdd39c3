"""A way to an address that can be cut, as a network can."""

import contextlib
import socket
import threading


class Gateway:
    """Forwards connections to an address of this host, while it is open.

    Attributes:
        address: Where it listens, as ``host:port``.
    """

    def __init__(self, target):
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self._sockets, self._threads = [], []
        self._port = 0
        self.open()
        self.address = f"{host}:{self._port}"

    def open(self):
        self._listener = socket.create_server((self._target[0], self._port))
        self._port = self._listener.getsockname()[1]
        self._start(self._accept, self._listener)

    def cut(self):
        """Refuse new connections, and break the existing ones."""
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._sockets.clear()
        for thread in self._threads:
            thread.join(10)
        self._threads.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut()

    def _start(self, work, *args):
        self._threads.append(threading.Thread(target=work, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += near, far
                self._start(_copy, near, far)
                self._start(_copy, far, near)


def _copy(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
