"""A worker's way to its coordinator over HTTP: a slave that takes requests, and a joiner."""

from collections.abc import Callable, Mapping
from typing import cast

from ding.interaction.slave import Slave
from ding.worker.comm_join import Joiner
from ding.worker.engines.http_messages import answer_to_json, request_from_json
from ding.worker.messages import Json
from ding.worker.seams import WorkerService


class ServiceSlave(Slave):
    """A slave that lets a service answer.

    Args:
        service: The worker.
        on_lost: Told why when the coordinator is gone without a word.
        slave_args: Arguments of the slave.
    """

    def __init__(
        self,
        service: WorkerService,
        on_lost: Callable[[str], object],
        *slave_args: object,
        **slave_kwargs: object,
    ) -> None:
        super().__init__(*slave_args, **slave_kwargs)  # type: ignore[arg-type]
        self._service, self._on_lost = service, on_lost

    def _process_task(self, task: Mapping[str, object]) -> Json:
        request = request_from_json(self._service.kind, task)
        return answer_to_json(request, self._service.handle(request))

    def _before_disconnection(self, data: Mapping[str, object]) -> None:
        self._service.released()

    def _lost_connection(self, master_address: str, err: Exception) -> None:
        self._on_lost(f"lost the coordinator at {master_address}: {type(err).__name__}: {err}")


class HttpWorker:
    """Lets a coordinator reach a service.

    Args:
        service: The worker.
        cfg: ``host``; ``port`` (``'auto'``, 0 or ``None``: any free one, told to the coordinator);
            ``coordinator``, its host and port; ``name``, ``run_key``, ``channel``,
            ``heartbeat_span``.
        on_failure: Told why no coordinator can reach it any more.
        make_slave: Makes the slave; called with what `ServiceSlave` is.
        ready: As for `Joiner`.
    """

    def __init__(
        self,
        service: WorkerService,
        cfg: Mapping[str, object],
        on_failure: Callable[[str], object],
        make_slave: Callable[..., Slave] = ServiceSlave,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._service = service
        port = cfg.get("port", "auto")
        has_own_port = port not in ("auto", 0, None)
        self._slave = make_slave(
            service,
            self._lost,
            cfg.get("host"),
            int(str(port)) if has_own_port else 0,
            cfg.get("heartbeat_span"),
            channel=cfg.get("channel"),
            key=cfg.get("run_key"),
            on_death=on_failure,
        )
        self._joiner: Joiner | None = None
        if cfg.get("coordinator") and not has_own_port:  # else it is in the coordinator's table
            host, at = cast("tuple[str, int]", cfg["coordinator"])
            self._joiner = Joiner(
                (host, int(at)),
                service.kind,
                str(cfg.get("name") or service.kind),
                lambda: self.address,
                cast("str | None", cfg.get("run_key")),
                cast("int | None", cfg.get("channel")),
                on_failure,
                ready,
            )

    @staticmethod
    def wanted(cfg: Mapping[str, object]) -> bool:
        """Whether a worker's config says where the coordinator is, or where it will look."""
        return bool(cfg.get("coordinator")) or cfg.get("port", "auto") not in ("auto", 0, None)

    @property
    def address(self) -> str:
        """Where the coordinator reaches it, as ``host:port``; known once it was started."""
        return self._slave.my_address

    def start(self) -> None:
        """Listen, and begin to join the coordinator; does not wait."""
        self._slave.start()
        if self._joiner is not None:
            self._joiner.start()

    def stop_joining(self) -> None:
        """Do not look for a coordinator any more; does not wait."""
        if self._joiner is not None:
            self._joiner.close(0.0)

    def close(self) -> None:
        """Stop listening; the request under way fails."""
        if self._joiner is not None:
            self._joiner.close()
        self._slave.close()

    def in_touch(self, tolerance: float) -> bool:
        """Whether the coordinator has given a sign of life in the last ``tolerance`` seconds."""
        silence = self._slave.master_silence
        return silence is not None and silence <= tolerance

    def _lost(self, cause: str) -> None:
        self._service.coordinator_lost(cause)
        if self._joiner is not None:
            self._joiner.lost()
