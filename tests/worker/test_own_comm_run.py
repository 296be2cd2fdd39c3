"""A whole run whose samples a user's comm types change on their way."""

import contextlib
import time
from pathlib import Path

import pytest
import torch

from ding.data.chunks import SharedFolder, read_chunk
from ding.utils.errors import ChunkError
from tests.parallel.runs import parallel_run

pytestmark = pytest.mark.timeout(90)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["flask_fs", "local"])
def test_it_converges_on_what_they_store(tmp_path, engine):
    comm = dict(type="half", import_names=["tests.worker.half_comm"])
    env = dict(type="side_walk", import_names=["tests.worker.half_comm"])
    create = dict(comm_collector=comm, comm_learner=comm, env=env)
    system = dict(engine=dict(type=engine))
    with parallel_run(tmp_path, stop_value=9, create=create, system=system) as run:
        kinds = set()
        while run.process.poll() is None:
            for path in map(Path, run.data_files()):
                if path.parent == run.exp / "data" and not path.name.startswith("."):
                    with contextlib.suppress(ChunkError):  # it is gone already
                        chunk = read_chunk(SharedFolder(str(path.parent)), path.name)
                        kinds.add(torch.as_tensor(chunk.columns["obs"]).dtype)
            time.sleep(0.05)
        assert run.end() == 0, run.output
        assert run.last_line.startswith("converged: mean return")
        run.wait_until_alone()
    assert kinds == ({torch.float16} if engine == "flask_fs" else set())
