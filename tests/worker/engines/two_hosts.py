"""Ray on this host and on a second one: a network namespace on a cable, with separate folders."""

import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ding.utils.system_helper import find_free_port
from tests.worker.engines.ray_nodes import MEMORY

#: Addresses of the two, in a network that no other uses.
HERE, THERE = "10.213.77.1", "10.213.77.2"
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
        port = self.address.partition(":")[2]
        self._start_ray("--head", f"--port={port}", "--include-dashboard=false", at=HERE)
        places = {"run": str(folder), "ray": "/tmp/ray", "shm": "/dev/shm"}
        for name, place in places.items():
            (there / name).mkdir(parents=True)
            Path(place).mkdir(parents=True, exist_ok=True)
        mounts = [f"mount --bind '{there}/{name}' '{place}'" for name, place in places.items()]
        apart = ["ip", "netns", "exec", _name(), "unshare", "--mount", "sh", "-c"]
        before = [*apart, " && ".join([*mounts, 'exec "$@"']), "sh"]
        self._start_ray(f"--address={self.address}", at=THERE, before=before)

    def _start_ray(self, *arguments: str, at: str, before: Sequence[str] = ()) -> None:
        """Start a node with ten of a resource, named by the end of its address, and a `rank`."""
        given = [
            f"--node-ip-address={at}",
            f'--resources={{"host{at[-1]}": 10, "rank": 1}}',
            "--block",
        ]
        given += [f"--object-store-memory={MEMORY}", "--num-cpus=3", *arguments]
        env = {**os.environ, **self.environ, "RAY_USAGE_STATS_ENABLED": "0"}
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "ray.scripts.scripts", "start", *given],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)
        assert process.stdout is not None
        output = ""
        for line in process.stdout:
            output += line
            if "Ray runtime started" in line:
                return
        raise AssertionError(f"the node at {at} cannot be started: {output}")

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdout is not None
            process.stdout.close()


def _name() -> str:
    return f"ding-{os.getpid()}"


@contextlib.contextmanager
def cable() -> Iterator[None]:
    """A second host with a network between it and this one.

    Skips the test where that is not permitted.
    """
    name, end = _name(), f"ding{os.getpid()}"[:14]
    there = ["ip", "-n", name]
    try:
        _run("unshare", "--mount", "true")
        _run("ip", "netns", "add", name)
    except _NOT_PERMITTED as error:
        pytest.skip(f"no namespaces: {getattr(error, 'stderr', None) or error}")
    try:
        try:
            _run("ip", "link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", name)
        except _NOT_PERMITTED as error:
            pytest.skip(f"no cable between namespaces: {getattr(error, 'stderr', None) or error}")
        for command in ("addr", "add", f"{HERE}/24", "dev", end), ("link", "set", end, "up"):
            _run("ip", *command)
        _run(*there, "addr", "add", f"{THERE}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            _run(*there, "link", "set", device, "up")
        yield
    finally:
        _run("ip", "netns", "del", name)  # and the cable with it


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
