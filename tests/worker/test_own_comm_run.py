"""A whole run whose samples and weights travel by a user's comm types."""

import pytest

from tests.parallel.runs import parallel_run

pytestmark = pytest.mark.timeout(90)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["flask_fs", "local"])
def test_it_converges_and_nothing_is_in_the_shared_folders(tmp_path, engine):
    comm = dict(type="numpy", import_names=["tests.worker.numpy_comm"], depot=str(tmp_path / "own"))
    env = dict(type="side_walk", import_names=["tests.worker.numpy_comm"])
    create = dict(comm_collector=comm, comm_learner=comm, env=env)
    system = dict(engine=dict(type=engine))
    with parallel_run(tmp_path, stop_value=9, create=create, system=system) as run:
        files = set()

        def learns(status):
            files.update(name for name in run.data_files() if "/." not in name)
            return status["train_iter"] >= 50

        run.wait_for("50 updates", learns)
        assert run.end() == 0, run.output
        assert run.last_line.startswith("converged: mean return")
        run.wait_until_alone()
    assert not files
    # Files that are no longer needed are removed, as in any run.
    assert [path.name for path in (tmp_path / "own").iterdir()] == ["weights.sqlite"]
