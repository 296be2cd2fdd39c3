"""Slurm: questions to a cluster, and the nodes of a job. Kubernetes: defaults of a run's parts."""

import itertools
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ding.utils import durations
from ding.utils.errors import ConfigError

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


_NODE_VARIABLES = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")


def job_nodes() -> list[str]:
    """The nodes of the Slurm job that this process runs in.

    Raises:
        ConfigError: It runs in none.
    """
    for name in _NODE_VARIABLES:
        if os.environ.get(name):
            return expand_nodes(os.environ[name])
    raise ConfigError(
        f"no Slurm nodes: run inside a job ({' or '.join(_NODE_VARIABLES)} is set there), or name "
        "the hosts of learners and collectors"
    )


def expand_nodes(text: str) -> list[str]:
    """The nodes of a Slurm list such as ``gpu[01-03,7],login-a``.

    Raises:
        ConfigError: Brackets that do not match.
    """
    nodes: list[str] = []
    if set(re.sub(r"\[[^\[\]]*\]", "", text)) & set("[]"):
        raise ConfigError(f"cannot read the list of Slurm nodes {text!r}")
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text):
        pieces = re.split(r"\[([^\]]*)\]", part.strip())
        choices = [
            [piece] if index % 2 == 0 else list(_numbers(piece))
            for index, piece in enumerate(pieces)
        ]
        nodes += ["".join(chosen) for chosen in itertools.product(*choices)]
    return nodes


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not dash:
            yield first
            continue
        if not (first.isdigit() and last.isdigit()):
            raise ConfigError(f"cannot read the range {part!r} in a list of Slurm nodes")
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))


DEFAULT_K8S_COLLECTOR_PORT = 22270
DEFAULT_K8S_LEARNER_PORT = 22271
DEFAULT_K8S_AGGREGATOR_SLAVE_PORT = 22272
DEFAULT_K8S_COORDINATOR_PORT = 22273
DEFAULT_K8S_AGGREGATOR_MASTER_PORT = 22273

DEFAULT_NAMESPACE = "default"
DEFAULT_POD_NAME = "dijob-example-coordinator"
DEFAULT_API_VERSION = "v1alpha1"


def exist_operator_server() -> bool:
    """Whether the environment names an operator server (``KUBERNETES_SERVER_URL``)."""
    return "KUBERNETES_SERVER_URL" in os.environ


def get_operator_server_kwargs(cfg: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for `OperatorServer`, from the config, else the pod's environment.

    Args:
        cfg: May hold ``system_addr`` (``host[:port]``) and ``api_version``.

    Raises:
        ConfigError: Neither names the server's address.
    """
    address = cfg.get("system_addr") or os.environ.get("KUBERNETES_SERVER_URL")
    if not address:
        raise ConfigError(
            "no operator server: set system_addr in the config or KUBERNETES_SERVER_URL"
        )
    host, _, port = address.partition(":")
    return {
        "api_version": cfg.get("api_version")
        or os.environ.get("KUBERNETES_SERVER_API_VERSION", DEFAULT_API_VERSION),
        "namespace": os.environ.get("KUBERNETES_POD_NAMESPACE", DEFAULT_NAMESPACE),
        "name": os.environ.get("KUBERNETES_POD_NAME", DEFAULT_POD_NAME),
        "host": host,
        "port": int(port) if port else None,
    }
