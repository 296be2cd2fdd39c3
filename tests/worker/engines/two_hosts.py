"""Ray on this host and on a second one: a network namespace on a cable, with separate folders."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ding.utils.system_helper import find_free_port
from tests.worker.engines.ray_nodes import MEMORY

#: Addresses of the two, in a network of this process: tests run side by side.
HERE, THERE = (f"10.213.{os.getpid() % 256}.{host}" for host in (1, 2))
#: Seconds until a node of Ray has to be up; on a busy machine it takes half a minute.
_START = 120
_NAME = f"ding-{os.getpid()}"
_AT_THERE = ("ip", "netns", "exec", _NAME)
#: What keeps a process from making namespaces.
_NOT_PERMITTED = (OSError, subprocess.SubprocessError)


class TwoHosts:
    """The cluster, which ends with `close`.

    Args:
        folder: Of the runs; the second host has another one in its place.
        there: What the second host has in place of ``folder``, ``/tmp/ray`` and ``/dev/shm``.

    Attributes:
        address: Of the cluster's head.
        environ: What a driver needs in its environment.
    """

    def __init__(self, folder: Path, there: Path) -> None:
        self.environ = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.address = f"{HERE}:{find_free_port(HERE)}"
        self._processes: list[subprocess.Popen] = []
        self._outputs = there
        port = self.address.partition(":")[2]
        places = {"run": str(folder), "ray": "/tmp/ray", "shm": "/dev/shm"}
        for name, place in places.items():
            (there / name).mkdir(parents=True)
            Path(place).mkdir(parents=True, exist_ok=True)
        mounts = [f"mount --bind '{there}/{name}' '{place}'" for name, place in places.items()]
        apart = [*_AT_THERE, "unshare", "--mount", "sh", "-c"]
        before = [*apart, " && ".join([*mounts, 'exec "$@"']), "sh"]
        try:
            self._start_ray("--head", f"--port={port}", "--include-dashboard=false", at=HERE)
            self._start_ray(f"--address={self.address}", at=THERE, before=before)
        except BaseException:
            self.close()
            raise

    def _start_ray(self, *arguments: str, at: str, before: Sequence[str] = ()) -> None:
        """Start a node with ten of a resource, named by the end of its address, and a `rank`."""
        given = [
            f"--node-ip-address={at}",
            f'--resources={{"host{at[-1]}": 10, "rank": 1}}',
            "--block",
        ]
        given += [f"--object-store-memory={MEMORY}", "--num-cpus=3", *arguments]
        env = {**os.environ, **self.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        output = self._outputs / f"{at}.txt"
        with output.open("w") as file:
            process = subprocess.Popen(
                [*before, sys.executable, "-m", "ray.scripts.scripts", "start", *given],
                env=env,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        deadline = time.monotonic() + _START
        while "Ray runtime started" not in output.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the node at {at} cannot be started: {output.read_text()}")
            time.sleep(0.1)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def cable() -> Iterator[None]:
    """A second host with a network between it and this one.

    Skips the test where that is not permitted.
    """
    end = f"ding{os.getpid()}"[:14]
    try:
        _run("unshare", "--mount", "true")
        _run("ip", "netns", "add", _NAME)
    except _NOT_PERMITTED as error:
        pytest.skip(f"no namespaces: {getattr(error, 'stderr', None) or error}")
    try:
        try:
            _run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", _NAME)
            _run("ip", "addr", "add", f"{HERE}/24", "dev", end)
            _run("ip", "link", "set", end, "up")
            _run("ip", "-n", _NAME, "addr", "add", f"{THERE}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                _run("ip", "-n", _NAME, "link", "set", device, "up")
            _send()
        except _NOT_PERMITTED as error:
            pytest.skip(f"no network of namespaces: {getattr(error, 'stderr', None) or error}")
        yield
    finally:
        # A process that is left keeps the namespace alive, and with it the cable.
        for pid in _run("ip", "netns", "pids", _NAME).split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _run("ip", "netns", "del", _NAME)


def _send() -> None:
    """Connect from there to here."""
    with socket.create_server((HERE, 0)) as server:
        port = server.getsockname()[1]
        connect = f"import socket; socket.create_connection(('{HERE}', {port}), 10)"
        _run(*_AT_THERE, sys.executable, "-c", connect)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
    return done.stdout
