"""The collectors and learners of a run, as services over an engine's stores."""

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY, import_module
from ding.worker.comm_worker import CommWorker
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.messages import Kind
from ding.worker.seams import WorkerService

#: The comm type of workers whose entry names none.
USUAL_TYPE = "flask_fs"


def build_service(spec: WorkerSpec, stores: Stores) -> WorkerService:
    """The service of a worker to which an engine brings requests."""
    return make_service(spec.kind, EasyDict(spec.entry), stores)


def make_service(kind: Kind, entry: EasyDict, stores: Stores | None = None) -> WorkerService:
    """A worker of the comm type that its entry, its part of the compiled config, names.

    Args:
        stores: Those of the engine that brings requests; without them, it listens by HTTP, and the
            entry names folders.
    """
    import_module(entry.get("import_names", []))
    registry = COMM_COLLECTOR_REGISTRY if kind == "collector" else COMM_LEARNER_REGISTRY
    worker: WorkerService = registry.build(entry.get("type", USUAL_TYPE), cfg=entry)
    if stores is not None and isinstance(worker, CommWorker):
        worker.stores, worker.listens = stores, False
    return worker
