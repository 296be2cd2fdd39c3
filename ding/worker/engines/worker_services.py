"""The collectors and learners of a run, as services over an engine's stores."""

from easydict import EasyDict

from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY, import_module
from ding.worker.collector.comm.collector_service import CollectorService
from ding.worker.collector.comm.flask_fs_collector import FlaskFileSystemCollector
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.learner.comm.flask_fs_learner import FlaskFileSystemLearner
from ding.worker.learner.comm.learner_service import LearnerService
from ding.worker.messages import Kind
from ding.worker.seams import WorkerService

#: The comm type whose samples and weights are where the engine has them.
USUAL_TYPE = "flask_fs"


def build_service(spec: WorkerSpec, stores: Stores) -> WorkerService:
    """The service of a worker to which an engine brings requests."""
    # It does not listen, whatever address the config gives.
    entry = EasyDict(spec.entry, coordinator=None, port="auto")
    return make_service(spec.kind, entry, stores)


def make_service(kind: Kind, entry: EasyDict, stores: Stores | None = None) -> WorkerService:
    """A worker over stores, or one of the comm type that its entry names.

    Args:
        entry: The worker's part of the compiled config.
        stores: Without them, the folders that the entry names.
    """
    import_module(entry.get("import_names", []))
    name = entry.get("type", USUAL_TYPE)
    registry = COMM_COLLECTOR_REGISTRY if kind == "collector" else COMM_LEARNER_REGISTRY
    if registry.get(name) not in (FlaskFileSystemCollector, FlaskFileSystemLearner):
        own_type: WorkerService = registry.build(name, cfg=entry)
        return own_type
    stores = stores or Stores(
        SharedFolderSamples(entry.path_data),
        SharedFolderWeights(entry.path_policy),
        FolderArtifacts(entry.get("exp_name", "default_experiment")),
    )
    if kind == "collector":
        return CollectorService(entry, stores.samples, stores.weights)
    return LearnerService(entry, stores.samples, stores.weights, stores.artifacts)
