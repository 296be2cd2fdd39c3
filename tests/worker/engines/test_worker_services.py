"""One place builds the workers of all engines."""

import pytest
import torch
from easydict import EasyDict

from ding.data.chunks import SharedFolder
from ding.interaction import TaskFail
from ding.utils import (
    COMM_COLLECTOR_REGISTRY,
    COMM_LEARNER_REGISTRY,
    get_data_compressor,
    save_file,
)
from ding.worker import FlaskFileSystemCollector, FlaskFileSystemLearner
from ding.worker.collector.comm.collector_service import CollectorService
from ding.worker.engines.carrier import Stores, WorkerSpec
from ding.worker.engines.shared_folder import (
    FolderArtifacts,
    SharedFolderSamples,
    SharedFolderWeights,
)
from ding.worker.engines.worker_services import build_service, make_service
from ding.worker.learner.comm.learner_service import LearnerService
from ding.worker.messages import (
    CloseTask,
    DemandRequest,
    ResourceRequest,
    SamplesRequest,
    StartTask,
    TrainRequest,
)
from tests.worker.learner.comm.rig import BATCH, rows, task_info

OURS = {"collector": CollectorService, "learner": LearnerService}


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


def test_a_learner_reads_samples_that_foreign_collectors_packed(tmp_path):
    learner = make_service("learner", entry_of(tmp_path, exp_name=str(tmp_path / "exp")))
    folder, pack = SharedFolder(str(tmp_path / "data")), get_data_compressor("zlib")
    for number, row in enumerate(rows(BATCH)):
        packed = pack({name: torch.as_tensor(value) for name, value in row.items()})
        save_file(folder.file(f"packed_{number}"), packed)
    learner.start()
    try:
        learner.handle(StartTask("learner", task_info(learner={"exp_name": str(tmp_path / "exp")})))
        meta = tuple({"data_id": f"packed_{n}", "compressor": "zlib"} for n in range(BATCH))
        answer = learner.handle(TrainRequest(rows=meta))
        assert (answer.bad_chunks, answer.learner_step) == ((), 1)
        learner.handle(CloseTask("learner"))
    finally:
        learner.close()
