"""Keeps a coordinator's workers in step with what a cluster's operator has started."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ding.interaction.base import split_http_address
from ding.utils import (
    DEFAULT_K8S_COLLECTOR_PORT,
    DEFAULT_K8S_LEARNER_PORT,
    durations,
    exist_operator_server,
    get_operator_server_kwargs,
)
from ding.worker.coordinator.operator_server import Answer, OperatorServer, OperatorServerError
from ding.worker.messages import Kind

_logger = logging.getLogger(__name__)

#: Kind of worker to its list in the operator's answers.
_LISTS: Mapping[Kind, str] = {"collector": "collectors", "learner": "learners"}
_DEFAULT_PORTS: Mapping[Kind, int] = {
    "collector": DEFAULT_K8S_COLLECTOR_PORT,
    "learner": DEFAULT_K8S_LEARNER_PORT,
}

Callback = Callable[[Kind, str, str, int], None]


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
