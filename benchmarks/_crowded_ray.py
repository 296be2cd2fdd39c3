"""The engine `ray` with many workers in each actor: a host has no memory for a process of each."""

import itertools
from collections.abc import Callable
from typing import Any

import ray

from ding.worker.engines.carrier import OnDeath, WorkerSpec
from ding.worker.engines.ray_engine import RayCarrier, RayHandle
from ding.worker.engines.ray_worker import RayWorker


class Crowd:
    """An actor that is many of the engine's actors."""

    def __init__(self) -> None:
        self._workers: dict[str, RayWorker] = {}

    @ray.method(concurrency_group="other")
    def build(self, name: str, spec: WorkerSpec) -> Any:
        self._workers[name] = RayWorker()
        return self._workers[name].build(spec)

    @ray.method(concurrency_group="watch")
    def watch(self, name: str) -> str | None:
        return self._workers[name].watch()

    @ray.method(concurrency_group="ask", num_returns=3)
    def ask(self, name: str, parcel: Any) -> Any:
        return self._workers[name].ask(parcel)

    @ray.method(concurrency_group="other")
    def end(self, name: str) -> Any:
        return self._workers[name].end()


class Method:
    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call


class Seat:
    """One worker of a crowd, in place of its actor."""

    def __init__(self, crowd: Any, name: str) -> None:
        self._crowd, self._name = crowd, name

    def __getattr__(self, method: str) -> Method:
        call = getattr(self._crowd, method).remote
        return Method(lambda *args: call(self._name, *args))


class CrowdedRay(RayCarrier):
    """Workers take turns at a few actors.

    Args:
        crowds: How many actors.
        workers: How many workers.
    """

    def __init__(self, exp_name: str, crowds: int, workers: int) -> None:
        super().__init__({"object_store_memory": 200 * 2**20}, exp_name)
        self._crowds, self._each = crowds, -(-workers // crowds)

    def open(self) -> None:
        super().open()
        groups = {"ask": self._each, "watch": self._each, "other": 4}
        kind = ray.remote(concurrency_groups=groups, num_cpus=0)(Crowd)  # type: ignore[call-overload]
        self._turns = itertools.cycle([kind.remote() for _ in range(self._crowds)])

    def _begin(self, worker: WorkerSpec, on_death: OnDeath) -> RayHandle:
        seat: Any = Seat(next(self._turns), worker.name)
        return RayHandle(worker, seat, on_death, seat.build.remote(worker))

    def _kill(self, handle: RayHandle) -> None:
        """The actors end with Ray."""
