"""Names of Slurm and Kubernetes that scripts import; a run needs none of them."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from ding.utils import durations
from ding.utils.errors import ConfigError

_FREE_PORT = "import socket; s = socket.socket(); s.bind(('', 0)); print(s.getsockname()[1])"


def node_to_host(node: str) -> str:
    """The IPv4 address of a node: the one in its name (``a-10-1-2-3``), or as resolved."""
    numbers = re.search(r"(\d+)-(\d+)-(\d+)-(\d+)$", node)
    return ".".join(numbers.groups()) if numbers else socket.gethostbyname(node)


def node_to_partition(target_node: str) -> str:
    """The (first) partition of a node, as ``sinfo`` names it."""
    return _ask("sinfo", "-h", "-n", target_node, "-o", "%R").split()[0]


def find_free_port_slurm(node: str) -> int:
    """A TCP port that is free on a node, as ``srun`` finds it there."""
    partition = node_to_partition(node)
    return int(_ask("srun", "-p", partition, "-w", node, sys.executable, "-c", _FREE_PORT))


def _ask(*command: str) -> str:
    return subprocess.check_output(command, text=True, timeout=durations.SLURM_TIMEOUT)


DEFAULT_K8S_COLLECTOR_PORT = 22270
DEFAULT_K8S_LEARNER_PORT = 22271
DEFAULT_K8S_COORDINATOR_PORT = 22273

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
