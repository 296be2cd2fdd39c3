"""Whole runs on a Ray cluster of two nodes: they train, and survive the loss of workers."""

import contextlib
import importlib.util
import json
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest

from ding.utils import read_file
from tests.entry.parallel_runs import assert_all_was_told, saved_iteration
from tests.parallel.runs import parallel_run
from tests.worker.engines.gateway import Gateway
from tests.worker.engines.ray_nodes import MEMORY, Nodes

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed"),
]

#: Seconds: a machine that does much else starts a worker in half a minute.
SLOW = 180
#: The learner on the head's node, collectors on the other one.
PLACED = dict(learner=dict(resources=dict(head=1)), collector=dict(resources=dict(second=1)))


@pytest.fixture(scope="module")
def cluster():
    """Two nodes behind a token."""
    nodes = Nodes()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in nodes.environ.items():
            patch.setenv(name, value)
        yield nodes
    nodes.close()


def on(cluster, **engine):
    """A run's settings."""
    return {"type": "ray", "address": cluster.address, **PLACED, **engine}


@contextlib.contextmanager
def run_on(cluster, folder, stop_value=99, engine=None, gpus=0, **settings):
    system = dict(engine=on(cluster, **(engine or {})), learner_gpu_num=gpus)
    with parallel_run(folder, stop_value=stop_value, system=system, **settings) as run:
        yield run
        assert run.processes() == []


def temporary_files():
    """What a run might leave in the folder for temporary files."""
    found = (path.name for path in Path(tempfile.gettempdir()).iterdir())
    return {name for name in found if "ding" in name or "-output-" in name}


def record(run):
    return json.loads((run.exp / "run.json").read_text())


def interrupted(run):
    run.process.send_signal(signal.SIGINT)
    assert run.end(SLOW) == 128 + signal.SIGINT
    return record(run)


def learns_on(run, iters=50, seconds=SLOW):
    """Wait until ``iters`` more updates were made."""
    begin = run.status().get("train_iter") or 0
    return run.wait_for(
        f"{iters} updates more", lambda s: s["train_iter"] >= begin + iters, seconds
    )


def wait_for_another(run, name, pid):
    run.wait_for(f"another {name}", lambda s: run.pid(name) not in (None, pid), SLOW)


def wait_for_the_goal(run):
    run.let_converge()
    assert run.end(SLOW) == 0, run.output
    return record(run)


def test_a_run_over_two_nodes_leaves_all_its_files_with_the_driver(cluster, tmp_path):
    before = temporary_files()
    diary = dict(callbacks=["tests.entry.parallel_runs:Diary"])
    with run_on(cluster, tmp_path, stop_value=9.5, gated=True, **diary) as run:
        run.wait_for("workers", lambda s: s["train_iter"] > 0, SLOW)
        workers = run.status()["workers"]
        nodes = {name: facts["address"] for name, facts in workers.items()}
        assert wait_for_the_goal(run)["status"] == "converged"
    assert nodes["collector0"] == nodes["collector1"] != nodes["learner0"]
    files = {str(path.relative_to(run.exp)) for path in run.exp.rglob("*") if path.is_file()}
    assert "ckpt/ckpt_best.pth.tar" in files
    assert {f"log/{name}/output.txt" for name in workers} <= files
    assert any(name.startswith("log/learner/events.out") for name in files)
    assert not any(name.startswith(("data/", "policy/")) for name in files)
    assert temporary_files() <= before
    assert_all_was_told(tmp_path / "diary.txt")


def test_workers_that_are_killed_or_stopped_are_replaced(cluster, tmp_path):
    with run_on(cluster, tmp_path) as run:
        run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
        killed = run.kill("collector0")
        wait_for_another(run, "collector0", killed)
        learns_on(run)
        assert "collector0" in run.output
        assert "starting it again (1 of 5)" in run.output
        run.wait_for("a saved state", lambda s: saved_iteration(run.exp) >= 50, SLOW)
        killed = run.kill("learner0")
        wait_for_another(run, "learner0", killed)
        after = learns_on(run, 20)
        assert after["train_iter"] > 50  # continues from its state
        stopped = run.kill("collector1", signal.SIGSTOP)
        wait_for_another(run, "collector1", stopped)
        interrupted(run)
    assert not Path(f"/proc/{stopped}").exists()


def test_a_learner_of_two_processes_is_on_one_node(cluster, tmp_path):
    engine = dict(learner=dict(num_cpus=0.5, resources=dict(head=0.5)))
    with run_on(cluster, tmp_path, stop_value=9.5, engine=engine, gpus=2, gated=True) as run:
        run.wait_for("workers", lambda s: s["train_iter"] > 0, SLOW)
        assert "learner_aggregator0" in run.status()["workers"]
        assert wait_for_the_goal(run)["status"] == "converged"


def test_a_node_comes_and_goes(cluster, tmp_path):
    asks = dict(collector=dict(resources=dict(third=5)))
    with run_on(cluster, tmp_path, engine=asks) as run:
        run.wait_for(
            "the learner", lambda s: s["workers"]["learner0"]["state"] != "connecting", SLOW
        )
        assert run.status()["train_iter"] == 0
        cluster.add("third")
        try:
            run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
        finally:
            cluster.remove("third")
        run.wait_for("lost collectors", lambda s: s["workers"]["collector0"]["pid"] is None, SLOW)
        cluster.add("third")
        try:
            learns_on(run, 100)
            interrupted(run)
        finally:
            cluster.remove("third")


def test_a_removed_node_costs_one_restart_of_its_workers(cluster, tmp_path):
    """Ray itself would place them there again, until it notices that the node is gone."""
    asks = dict(collector=dict(resources=dict(third=5)))
    cluster.add("third")
    with run_on(cluster, tmp_path, engine=asks) as run:
        begin = run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
        names = ("collector0", "collector1")
        before = {begin["workers"][name]["pid"] for name in names}
        cluster.add("fourth", "third")
        cluster.remove("third")
        try:
            run.wait_for(
                "collectors on the other node",
                lambda s: not before & {None, *(s["workers"][name]["pid"] for name in names)},
                SLOW,
            )
            learns_on(run)
            interrupted(run)
        finally:
            cluster.remove("fourth")
        assert "starting it again (1 of 5)" in run.output
        assert "(2 of 5)" not in run.output
        assert "state-dump" not in run.output


def test_the_head_cannot_be_reached_for_a_while(cluster, tmp_path):
    with Gateway(cluster.address) as gateway:
        settings = dict(address=gateway.address, head_tolerance=50)
        with run_on(cluster, tmp_path, engine=settings) as run:
            run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
            gateway.cut()
            time.sleep(6)  # longer than a head of the run's own may be silent
            learns_on(run, 20)
            killed = run.kill("collector0")
            gateway.open()
            wait_for_another(run, "collector0", killed)
            interrupted(run)


def kill_driver(run):
    """Kill it when it has a state; returns the processes of its workers, and the last status."""
    run.wait_for("updates", lambda s: s["train_iter"] >= 150, SLOW)
    run.wait_for("a state", lambda s: state_of(run).exists(), SLOW)
    status = run.status()
    run.process.kill()
    run.process.wait()
    return pids(status), status


def state_of(run):
    return run.exp / "ckpt/coordinator_state.pth.tar"


def pids(status):
    return {name: facts["pid"] for name, facts in status["workers"].items()}


def rows(status):
    """Samples in the learner's buffer."""
    (buffer,) = status["buffers"].values()
    return buffer["count"]


def wait_until_gone(processes):
    deadline = time.monotonic() + SLOW
    while any(Path(f"/proc/{pid}").exists() for pid in processes.values()):
        assert time.monotonic() < deadline, "workers outlive their run"
        time.sleep(0.1)


def test_the_driver_is_killed_and_another_goes_on_with_its_workers(cluster, tmp_path):
    before = temporary_files()
    with run_on(cluster, tmp_path) as run:
        workers, last = kill_driver(run)
    begin = read_file(state_of(run))["state"]["facts"]["envstep"]
    resume = dict(learn=dict(resume_training=True))
    with run_on(cluster, tmp_path, stop_value=9.5, gated=True, **resume) as again:
        # More samples than this driver's own collectors have brought.
        status = again.wait_for(
            "the samples of before",
            lambda s: rows(s) - (s["envstep"] - begin) >= 0.8 * rows(last),
            SLOW,
        )
        assert pids(status) == workers
        learns_on(again, 20)
        assert wait_for_the_goal(again)["status"] == "converged"
    wait_until_gone(workers)
    assert temporary_files() <= before


def test_workers_whose_driver_is_killed_end_when_no_other_comes(cluster, tmp_path):
    with run_on(cluster, tmp_path, engine=dict(driver_tolerance=10)) as run:
        workers, _ = kill_driver(run)
    wait_until_gone(workers)


def test_two_runs_on_one_cluster(cluster, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with (
        run_on(cluster, tmp_path / "a", stop_value=9.5) as one,
        run_on(cluster, tmp_path / "b", stop_value=9.5) as other,
    ):
        assert wait_for_the_goal(one)["status"] == "converged"
        assert wait_for_the_goal(other)["status"] == "converged"


def test_the_head_is_killed(tmp_path):
    """On a Ray of the run's own."""
    engine = dict(type="ray", object_store_memory=MEMORY)
    with parallel_run(tmp_path, stop_value=99, system=dict(engine=engine)) as run:
        run.wait_for("updates", lambda s: s["train_iter"] >= 20, SLOW)
        (head,) = (pid for pid in run.processes() if "gcs_server" in command(pid))
        os.kill(head, signal.SIGKILL)
        assert run.end(SLOW) == 1
        assert record(run)["status"] == "failed"
        assert "head of the Ray cluster" in record(run)["reason"]
        run.wait_until_alone(SLOW)


def test_processes_of_a_learner_are_killed(tmp_path):
    """On a Ray of the run's own."""
    engine = dict(type="ray", object_store_memory=MEMORY)
    settings = dict(system=dict(engine=engine, learner_gpu_num=2))
    with parallel_run(tmp_path, stop_value=99, **settings) as run:
        for name in ("learner0", "learner1"):
            learns_on(run)
            pid = run.pid_in_team(name)
            os.kill(pid, signal.SIGKILL)
            line = f"LearnerLost: {name}"
            run.wait_for("line", lambda s, line=line: line in run.output, SLOW)
            learns_on(run, 20)
            assert run.pid_in_team(name) != pid
            assert "starting it again (1 of 5)" in run.output
        interrupted(run)


def test_no_cluster_there(tmp_path):
    engine = dict(type="ray", address="127.0.0.1:1")
    with parallel_run(tmp_path, system=dict(engine=engine)) as run:
        assert run.end(SLOW) != 0
        assert "no Ray cluster at '127.0.0.1:1'" in run.output


def command(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""
