"""One place builds the workers of all engines."""

import pytest
from easydict import EasyDict

from ding.interaction import TaskFail
from ding.utils import COMM_COLLECTOR_REGISTRY, COMM_LEARNER_REGISTRY
from ding.worker import FlaskFileSystemCollector, FlaskFileSystemLearner
from ding.worker.comm_worker import build_service, make_service
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.messages import DemandRequest, ResourceRequest, SamplesRequest

OURS = {"collector": FlaskFileSystemCollector, "learner": FlaskFileSystemLearner}


def entry_of(folder, **kwargs):
    folders = dict(path_data=str(folder / "data"), path_policy=str(folder / "policy"))
    return EasyDict({"name": "worker0", **folders, **kwargs})


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("named", [{}, {"type": "flask_fs"}])
def test_workers_are_of_the_same_class_with_and_without_stores(tmp_path, kind, named):
    entry = entry_of(tmp_path, **named)
    over_folders = make_service(kind, entry)
    stores = Stores(
        SharedFolderSamples(entry.path_data),
        SharedFolderWeights(entry.path_policy),
        FolderArtifacts(str(tmp_path)),
    )
    at_an_engine = build_service(WorkerSpec("worker0", kind, build_service, entry), stores)
    assert type(over_folders) is type(at_an_engine) is OURS[kind]
    assert at_an_engine.stores is stores
    assert over_folders.stores.samples.path == stores.samples.path


@pytest.mark.parametrize(
    ("kind", "registry", "base"),
    [
        ("collector", COMM_COLLECTOR_REGISTRY, FlaskFileSystemCollector),
        ("learner", COMM_LEARNER_REGISTRY, FlaskFileSystemLearner),
    ],
)
def test_a_class_that_replaces_the_usual_one_is_built(tmp_path, kind, registry, base):
    class Own(base):
        pass

    registry.register("flask_fs", Own, force_overwrite=True)
    try:
        assert type(make_service(kind, entry_of(tmp_path))) is Own
    finally:
        registry.register("flask_fs", base, force_overwrite=True)


@pytest.mark.parametrize(
    ("kind", "other"), [("collector", DemandRequest()), ("learner", SamplesRequest())]
)
def test_a_request_of_the_other_kind_is_refused(tmp_path, kind, other):
    worker = make_service(kind, entry_of(tmp_path))
    assert worker.handle(ResourceRequest()).ours
    with pytest.raises(TaskFail, match=f"a {kind} does not support {type(other).__name__}"):
        worker.handle(other)
    worker.close()
