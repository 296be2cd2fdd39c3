"""Defaults of the parts of a parallel run in Kubernetes."""

import os
from collections.abc import Mapping
from typing import Any

from ding.utils.errors import ConfigError

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
