"""More or fewer workers of a run in Kubernetes: asks its operator, through ``kubectl``."""

import json
import os
import subprocess
from typing import Any

from ding.utils import durations
from ding.utils.cluster_helper import DEFAULT_API_VERSION
from ding.utils.errors import ConfigError, RunError

_SERVER = "di-server.di-system:8080"
_TYPES = ("collector", "learner")


def dist_add_replicas(
    replicas_type: str,
    kubeconfig: str,
    replicas: int,
    coordinator_name: str,
    namespace: str,
    cpus: int,
    gpus: int,
    memory: str,
) -> None:
    """Ask the operator for more workers.

    Args:
        replicas_type: ``collector`` or ``learner``.
        kubeconfig: Configuration of ``kubectl``; its usual one if empty.
        replicas: How many.
        coordinator_name: Pod of the run's coordinator.
        namespace: Of the pod.
        cpus: CPUs of each, as its operator is used to if empty; as for the next two.
        gpus: GPUs of each.
        memory: Memory of each, such as ``10Gi``.

    Raises:
        ConfigError: Not such a type, or no ``kubectl``.
        RunError: Kubernetes or the operator refuses.
    """
    wanted = {"replicas": replicas, "cpus": cpus, "gpus": gpus, "memory": memory}
    wanted = {key: value for key, value in wanted.items() if value is not None}
    _ask("create", "replicas", replicas_type, kubeconfig, coordinator_name, namespace, wanted)
    print(f"asked for {replicas} more of {replicas_type}")


def dist_delete_replicas(
    replicas_type: str, kubeconfig: str, replicas: int, coordinator_name: str, namespace: str
) -> None:
    """Ask the operator to end workers; arguments and errors as for `dist_add_replicas`."""
    wanted = {"replicas": replicas}
    _ask("delete", "replicas", replicas_type, kubeconfig, coordinator_name, namespace, wanted)
    print(f"asked to end {replicas} of {replicas_type}")


def dist_restart_replicas(
    replicas_type: str,
    kubeconfig: str,
    coordinator_name: str,
    namespace: str,
    restart_pod_name: str,
) -> None:
    """Report a worker's pod as failed, so that the operator replaces it.

    Args:
        replicas_type: As for `dist_add_replicas`, like the others.
        restart_pod_name: The pod.
    """
    failed = [restart_pod_name]
    _ask(
        "create", "replicas/failed", replicas_type, kubeconfig, coordinator_name, namespace, failed
    )
    print(f"asked to replace {restart_pod_name}")


def _ask(
    verb: str,
    path: str,
    replicas_type: str,
    kubeconfig: str | None,
    coordinator_name: str,
    namespace: str,
    wanted: Any,
) -> None:
    if replicas_type not in _TYPES:
        raise ConfigError(f"replicas_type must be {' or '.join(_TYPES)}, got {replicas_type!r}")
    body = {
        "namespace": namespace,
        "coordinator": coordinator_name,
        f"{replicas_type}s": wanted,
    }
    command = ["kubectl"]
    if kubeconfig:
        command += ["--kubeconfig", os.path.expanduser(kubeconfig)]
    command += [verb, "--raw", _proxy(path), "-f", "-"]
    try:
        done = subprocess.run(
            command,
            input=json.dumps(body),
            capture_output=True,
            text=True,
            timeout=durations.KUBECTL_TIMEOUT,
        )
    except FileNotFoundError as error:
        raise ConfigError(
            "kubectl is not installed: workers in Kubernetes are added and ended through it"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RunError(f"kubectl gave no answer in {durations.KUBECTL_TIMEOUT:.0f} s") from error
    if done.returncode:
        output = done.stderr.strip() or done.stdout.strip() or "it says nothing"
        raise RunError(f"kubectl failed with status {done.returncode}: {output}")
    _check_answer(done.stdout)


def _proxy(path: str) -> str:
    """Where the API server passes requests on to the operator's service."""
    address = os.environ.get("KUBERNETES_SERVER_URL") or _SERVER
    host, _, port = address.partition(":")
    service, _, namespace = host.partition(".")
    service = f"{service}:{port}" if port else service
    root = f"/api/v1/namespaces/{namespace.split('.')[0] or 'default'}/services/{service}/proxy"
    version = os.environ.get("KUBERNETES_SERVER_API_VERSION", DEFAULT_API_VERSION).strip("/")
    return f"{root}/{version}/{path}"


def _check_answer(text: str) -> None:
    try:
        answer = json.loads(text)
    except ValueError:
        return
    if isinstance(answer, dict) and answer.get("success") is False:
        raise RunError(f"the operator refuses: {answer.get('message') or answer}")
