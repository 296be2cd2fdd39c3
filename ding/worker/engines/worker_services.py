"""The collectors and learners of a run, as services over an engine's stores."""

from easydict import EasyDict

from ding.worker.collector.comm.base_comm_collector import create_comm_collector
from ding.worker.collector.comm.collector_service import CollectorService
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.learner.comm.base_comm_learner import create_comm_learner
from ding.worker.learner.comm.learner_service import LearnerService
from ding.worker.seams import WorkerService

#: The comm type whose samples and weights are where the engine has them.
USUAL_TYPE = "flask_fs"


def build_service(spec: WorkerSpec, stores: Stores) -> WorkerService:
    """The service of a worker: the usual one, or the comm type that its entry names."""
    # The engine brings its requests: it does not listen, whatever address the config gives.
    entry = EasyDict(spec.entry, coordinator=None, port="auto")
    is_usual = entry.get("type", USUAL_TYPE) == USUAL_TYPE
    if spec.kind == "collector":
        if is_usual:
            return CollectorService(entry, stores.samples, stores.weights)
        return create_comm_collector(entry)
    if is_usual:
        return LearnerService(entry, stores.samples, stores.weights, stores.artifacts)
    return create_comm_learner(entry)
