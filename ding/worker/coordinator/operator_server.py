"""A client of the operator that starts and ends workers in a Kubernetes cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

import requests

from ding.interaction.base import HttpEngine, get_values_from_response, split_http_address
from ding.utils.errors import ConfigError, InteractionError

_WORKER_TYPES = ("coordinator", "aggregator")

#: ``(success, code, message, data)``
Answer = tuple[bool, int | None, str | None, Any]
Fields = Mapping[str, Any] | None


class OperatorServerError(InteractionError, ConnectionError):
    """The operator cannot be reached, or its answer is invalid."""


class OperatorServer:
    """Requests information on workers, and further workers, from a cluster's operator.

    All methods return whether the request succeeded, the operator's code and message, and its
    data; they raise `OperatorServerError` if there is no answer.

    Args:
        host: The operator's host or address: ``[http[s]://]host[:port]``.
        port: 80, or 443 with HTTPS, if not given.
        api_version: First component of the request paths.
        namespace: The workers' namespace.
        name: The name of the coordinator that sends the requests.
    """

    def __init__(
        self,
        host: str,
        port: int | None = None,
        api_version: str = "v1alpha1",
        https: bool = False,
        namespace: str | None = None,
        name: str | None = None,
    ) -> None:
        if "://" in host:
            host, port, https, _ = split_http_address(host, port)
        self.api_version = api_version.strip("/")
        self._engine = HttpEngine(host, port or (443 if https else 80), https, self.api_version)
        self._namespace, self._name, self._worker_type = namespace, name, _WORKER_TYPES[0]

    def set_worker_type(self, type: str) -> None:
        """Send requests as a ``'coordinator'`` (default) or an ``'aggregator'``."""
        if type not in _WORKER_TYPES:
            raise ConfigError(f"worker type is {type!r}; expected {' or '.join(_WORKER_TYPES)}")
        self._worker_type = type

    def get_replicas(self, name: str | None = None) -> Answer:
        """A coordinator's workers: addresses as ``collectors`` and ``learners``."""
        asker = {key: value for key, value in self._asker(name).items() if value is not None}
        return self._request("GET", "replicas", params=asker)

    def post_replicas(self, data: Mapping[str, Any]) -> Answer:
        """Request ``collectors`` and ``learners``, each a mapping with ``replicas`` and optionally
        ``cpu``, ``gpu``, ``memory``."""
        return self._request("POST", "replicas", {**data, **self._asker()})

    def post_replicas_failed(
        self, collectors: Sequence[str] = (), learners: Sequence[str] = ()
    ) -> Answer:
        """Report workers that do not work, by their addresses."""
        failed = {"collectors": list(collectors), "learners": list(learners)}
        return self._request("POST", "replicas/failed", {**failed, **self._asker()})

    def delete_replicas(self, n_collectors: int = 0, n_learners: int = 0) -> Answer:
        """Release the given numbers of workers."""
        unused = {"collectors": {"replicas": n_collectors}, "learners": {"replicas": n_learners}}
        return self._request("DELETE", "replicas", {**unused, **self._asker()})

    def close(self) -> None:
        """Close the connection."""
        self._engine.close()

    def _asker(self, name: str | None = None) -> dict[str, str | None]:
        return {"namespace": self._namespace, self._worker_type: name or self._name}

    def _request(
        self, method: str, path: str, data: Fields = None, params: Fields = None
    ) -> Answer:
        where = f"the operator, asked for {method} {self._engine.get_url(path)},"
        try:
            response = self._engine.request(
                method, path, data, params=params, raise_for_status=False, retries=0
            )
            status, success, code, message, answer = get_values_from_response(response)
        except requests.RequestException as error:
            raise OperatorServerError(
                f"{where} cannot be reached: {error}; check operator_server.system_addr"
            ) from error
        except ValueError as error:
            raise OperatorServerError(
                f"{where} answered with status {response.status_code} and no JSON object: {error}"
            ) from error
        return success and status < 400, code, message, answer
