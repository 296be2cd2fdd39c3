"""Questions to a Slurm cluster."""

import re
import socket
import subprocess
import sys

from . import durations

_FREE_PORT = "import socket; s = socket.socket(); s.bind(('', 0)); print(s.getsockname()[1])"


def node_to_host(node: str) -> str:
    """The IPv4 address of a node: the one in its name (``a-10-1-2-3``), or as resolved."""
    numbers = re.search(r"(\d+)-(\d+)-(\d+)-(\d+)$", node)
    return ".".join(numbers.groups()) if numbers else socket.gethostbyname(node)


def node_to_partition(target_node: str) -> str:
    """The (first) partition of a node.

    Raises:
        RuntimeError: Slurm does not answer, or does not know the node.
    """
    partition = _ask(["sinfo", "-h", "-n", target_node, "-o", "%R"]).split()
    if not partition:
        raise RuntimeError(f"slurm knows no node {target_node!r}; see `sinfo -N`")
    return partition[0]


def find_free_port_slurm(node: str) -> int:
    """A TCP port that nobody listens on at a node.

    Raises:
        RuntimeError: Slurm does not answer, or cannot run a command there.
    """
    partition = node_to_partition(node)
    return int(_ask(["srun", "-p", partition, "-w", node, sys.executable, "-c", _FREE_PORT]))


def _ask(command: list[str]) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=durations.SLURM_TIMEOUT
        )
    except FileNotFoundError as error:
        raise RuntimeError(f"{command[0]} is not installed: this is no slurm node") from error
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{' '.join(command)} failed: {error.stderr.strip()}") from error
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{' '.join(command)} gave no answer in 60 s") from error
    return done.stdout
