"""A run on Ray over two hosts that share no folder: all of it is in the driver's run folder."""

import importlib.util
import json

import pytest

from tests.parallel.runs import parallel_run
from tests.worker.engines.two_hosts import THERE, TwoHosts, cable

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

#: Seconds: a machine that does much else starts a worker in half a minute.
SLOW = 180


@pytest.fixture
def hosts(tmp_path, monkeypatch):
    (tmp_path / "runs").mkdir()
    with cable():
        hosts = TwoHosts(tmp_path / "runs", tmp_path / "there")
        try:
            for name, value in hosts.environ.items():
                monkeypatch.setenv(name, value)
            yield hosts
        finally:
            hosts.close()


def test_two_hosts_leave_all_files_with_the_driver(hosts, tmp_path):
    engine = dict(type="ray", address=hosts.address)
    placed = dict(learner=dict(resources=dict(host2=1)), collector=dict(resources=dict(host2=1)))
    system = dict(engine={**engine, **placed})
    with parallel_run(tmp_path / "runs", gated=True, system=system) as run:
        # The environments look for the gate on the host that they are on.
        run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
        workers = run.status()["workers"]
        assert all(THERE in facts["address"] for facts in workers.values()), workers
        run.let_converge()
        (tmp_path / "there/run/gate").touch()
        assert run.end(SLOW) == 0, run.output
    assert json.loads((run.exp / "run.json").read_text())["status"] == "converged"
    files = {str(path.relative_to(run.exp)) for path in run.exp.rglob("*") if path.is_file()}
    assert {"ckpt/ckpt_best.pth.tar", "run.json", "episodes.csv"} <= files
    assert {f"log/{name}/output.txt" for name in workers} <= files
    assert any(name.startswith("log/learner/events.out") for name in files)
    assert [path.name for path in (tmp_path / "there/run").rglob("*")] == ["gate"]


def test_the_processes_of_a_learner_are_on_two_hosts(hosts, tmp_path):
    learner = dict(resources=dict(rank=1))  # of which each host has one
    collector = dict(resources=dict(host1=1))
    engine = dict(type="ray", address=hosts.address, learner=learner, collector=collector)
    system = dict(engine=engine, learner_gpu_num=2)
    with parallel_run(tmp_path / "runs", gated=True, system=system) as run:
        run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
        (tmp_path / "runs/gate").touch()
        assert run.end(SLOW) == 0, run.output
    for name in ("learner0", "learner1"):
        assert "did not come" not in (run.exp / f"log/{name}/output.txt").read_text()
