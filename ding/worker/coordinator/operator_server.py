"""A client of the operator that starts and ends workers in a cluster, and its link to a run."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests

from ding.interaction.base import HttpEngine, get_values_from_response, split_http_address
from ding.utils import (
    DEFAULT_K8S_COLLECTOR_PORT,
    DEFAULT_K8S_LEARNER_PORT,
    durations,
    exist_operator_server,
    get_operator_server_kwargs,
)
from ding.utils.errors import ConfigError, InteractionError
from ding.worker.messages import Kind

_logger = logging.getLogger(__name__)

#: Kind of worker to its list in the operator's answers.
_LISTS: Mapping[Kind, str] = {"collector": "collectors", "learner": "learners"}
_DEFAULT_PORTS: Mapping[Kind, int] = {
    "collector": DEFAULT_K8S_COLLECTOR_PORT,
    "learner": DEFAULT_K8S_LEARNER_PORT,
}

Callback = Callable[[Kind, str, str, int], None]

_RETRIES = 2
_WORKER_TYPES = ("coordinator", "aggregator")

#: ``(success, code, message, data)``
Answer = tuple[bool, int | None, str | None, Any]


class OperatorServerError(InteractionError, ConnectionError):
    """The operator cannot be reached, or answers what it should not."""


class OperatorServer:
    """Asks a cluster's operator for workers, and which ones there are.

    Each request names the namespace and who asks. It is sent again, a few times, when the operator
    cannot be reached; every wait is bounded. Proxy settings are not looked at.

    Args:
        host: Of the operator.
        port: 80, or 443 with HTTPS, if not given.
        api_version: First part of its paths.
        https: Whether to speak HTTPS.
        namespace: Where the workers live.
        name: Of the coordinator that asks.
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
        if port is None:
            port = 443 if https else 80
        self._api_version = api_version.strip("/")
        self._engine = HttpEngine(host, port, https, self._api_version)
        self._namespace, self._name = namespace, name
        self._worker_type = _WORKER_TYPES[0]

    @property
    def api_version(self) -> str:
        return self._api_version

    def set_worker_type(self, type: str) -> None:
        """Ask in the name of a ``'coordinator'`` (at first) or an ``'aggregator'``."""
        if type not in _WORKER_TYPES:
            raise ConfigError(f"worker type is {type!r}; expected {' or '.join(_WORKER_TYPES)}")
        self._worker_type = type

    def get_replicas(self, name: str | None = None) -> Answer:
        """Which workers there are: ``data`` lists addresses as ``collectors`` and ``learners``.

        Args:
            name: Whose workers; one's own if not given.

        Returns:
            Whether it worked, the operator's code and message, and its data; as for all methods.

        Raises:
            OperatorServerError: There was no answer, or nonsense; as for all methods.
        """
        params = {key: value for key, value in self._asker(name).items() if value is not None}
        return self._request("GET", "replicas", params=params)

    def post_replicas(self, data: Mapping[str, Any]) -> Answer:
        """Ask for workers.

        Args:
            data: ``collectors`` and ``learners``, each with ``replicas`` and perhaps ``cpu``,
                ``gpu``, ``memory``.
        """
        return self._request("POST", "replicas", {**data, **self._asker()})

    def post_replicas_failed(
        self, collectors: Sequence[str] = (), learners: Sequence[str] = ()
    ) -> Answer:
        """Tell which workers, by their addresses, do not work."""
        failed = {"collectors": list(collectors), "learners": list(learners)}
        return self._request("POST", "replicas/failed", {**failed, **self._asker()})

    def delete_replicas(self, n_collectors: int = 0, n_learners: int = 0) -> Answer:
        """Give so many workers back."""
        unused = {"collectors": {"replicas": n_collectors}, "learners": {"replicas": n_learners}}
        return self._request("DELETE", "replicas", {**unused, **self._asker()})

    def close(self) -> None:
        """Close the connection; a request that is being tried again gives up."""
        self._engine.close()

    def _asker(self, name: str | None = None) -> dict[str, str | None]:
        return {"namespace": self._namespace, self._worker_type: name or self._name}

    def _request(
        self,
        method: str,
        path: str,
        data: Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Answer:
        where = f"the operator, asked for {method} {self._engine.get_url(path)},"
        try:
            response = self._engine.request(
                method,
                path,
                data,
                params=params,
                retries=_RETRIES,
                retry_waiting=durations.OPERATOR_RETRY,
            )
        except requests.HTTPError as error:
            response = error.response
        except requests.RequestException as error:
            raise OperatorServerError(
                f"{where} cannot be reached: {error}; check operator_server.system_addr"
            ) from error
        try:
            status, success, code, message, answer = get_values_from_response(response)
        except ValueError as error:
            raise OperatorServerError(
                f"{where} answered with status {response.status_code} and no JSON object: {error}"
            ) from error
        return success and status < 400, code, message, answer


def wants_operator(cfg: Mapping[str, Any]) -> bool:
    """Whether the config of the operator, or the pod's environment, names one."""
    return bool(cfg.get("system_addr")) or exist_operator_server()


class OperatorLink:
    """Asks for the workers of a run, tells of those that come and go, and reports failed ones.

    Args:
        cfg: ``system_addr`` (``host[:port]``), ``api_version``; ``init_replicas_request``: what to
            ask for at the start; ``check_span``: seconds between looks (3).
        on_come: Called with kind, name, host and port of a worker that is new.
        on_go: Called likewise with one that the operator lists no more.
    """

    def __init__(self, cfg: Mapping[str, Any], on_come: Callback, on_go: Callback) -> None:
        self._cfg = cfg
        self._server = OperatorServer(**get_operator_server_kwargs(cfg))
        self._on_come, self._on_go = on_come, on_go
        self._known: dict[tuple[Kind, str], tuple[str, int]] = {}
        self._failed: dict[Kind, set[str]] = {kind: set() for kind in _LISTS}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._is_asked = not cfg.get("init_replicas_request")
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="operator-link", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End; a request that is under way is waited for, but not for long."""
        self._closed = True
        self._wake.set()
        self._server.close()
        if self._thread.ident is not None:
            self._thread.join(durations.OPERATOR_JOIN)

    def report_failed(self, kind: Kind, name: str) -> None:
        """Have the operator replace a worker; the report is sent soon."""
        with self._lock:
            if (kind, name) in self._known:
                self._failed[kind].add(name)
                self._wake.set()

    def _run(self) -> None:
        span = float(self._cfg.get("check_span", durations.OPERATOR_LOOK))
        while not self._closed:
            self._wake.clear()
            try:
                self._look()
                self._trouble = None
            except OperatorServerError as error:
                self._complain(str(error))
            except Exception:  # the edge of a thread: what callbacks raise, too
                _logger.exception("the link to the operator failed")
            self._wake.wait(span)

    def _look(self) -> None:
        self._compare(_accepted("the question for workers", self._server.get_replicas()))
        if not self._is_asked:
            answer = self._server.post_replicas(self._cfg["init_replicas_request"])
            _accepted("the request for workers", answer)
            self._is_asked = True
        self._send_failed()

    def _send_failed(self) -> None:
        with self._lock:
            failed = {kind: sorted(names) for kind, names in self._failed.items()}
        if not any(failed.values()):
            return
        answer = self._server.post_replicas_failed(failed["collector"], failed["learner"])
        _accepted("the report of failed workers", answer)
        with self._lock:
            for kind, names in failed.items():
                self._failed[kind].difference_update(names)

    def _compare(self, data: object) -> None:
        if not isinstance(data, Mapping):
            raise OperatorServerError(f"the operator lists workers as {data!r}; expected an object")
        listed: dict[tuple[Kind, str], tuple[str, int]] = {}
        for kind, key in _LISTS.items():
            for name in data.get(key) or ():
                listed[kind, str(name)] = _address(str(name), kind)
        with self._lock:
            before, self._known = self._known, listed
        for (kind, name), address in before.items():
            if (kind, name) not in listed:
                self._on_go(kind, name, *address)
        for (kind, name), address in listed.items():
            if (kind, name) not in before:
                self._on_come(kind, name, *address)

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble and not self._closed:
            _logger.warning("%s", trouble)
        self._trouble = trouble


def _accepted(what: str, answer: Answer) -> object:
    success, code, message, data = answer
    if not success:
        raise OperatorServerError(f"the operator refused {what}: {message!r} (code {code})")
    return data


def _address(name: str, kind: Kind) -> tuple[str, int]:
    try:
        host, port, _, _ = split_http_address(name, _DEFAULT_PORTS[kind])
    except ValueError as error:
        raise OperatorServerError(f"the operator lists a {kind} {name!r}: {error}") from error
    return host, port
