"""A parallel run recovers and converges whichever part of it is killed or stopped."""

import os
import signal

import pytest

from tests.entry.parallel_runs import saved_iteration
from tests.parallel.runs import ParallelRun, parallel_run

pytestmark = pytest.mark.timeout(120)

OFTEN_SAVED = {"LEARNER_SAVE_INTERVAL": 0.5, "COORDINATOR_SAVE_INTERVAL": 0.5}
#: Seconds within which a run has to be as before.
RECOVERY = 30


def _assert_converges(run: ParallelRun) -> None:
    run.let_converge()
    assert run.end() == 0
    assert run.last_line.startswith("converged: mean return")
    run.wait_until_alone()
    assert run.data_files() == []


def _failures(run: ParallelRun, worker: str) -> list[str]:
    """The causes that were reported to the operator, one line each."""
    failures = [failure for failure in run.status()["failures"] if failure["worker"] == worker]
    for failure in failures:
        # The line names the worker that got the task, and is written after that.
        run.wait_for("line", lambda s, cause=failure["cause"]: cause in run.output, RECOVERY)
        lines = [line for line in run.output.splitlines() if failure["cause"] in line]
        assert len(lines) == 1, (failure, run.output)
        assert worker in lines[0]
        assert failure["task"] in lines[0]
    return [failure["cause"] for failure in failures]


def test_a_killed_collector_is_replaced(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        pid = run.kill("collector0")
        before = run.status()["buffers"]
        status = run.wait_for(
            "new collector",
            lambda s: (
                s["workers"]["collector0"]["pid"] != pid
                and s["workers"]["collector0"]["state"] == "running"
            ),
            RECOVERY,
        )
        [cause] = _failures(run, "collector0")
        assert cause == "was killed by SIGKILL; starting it again (1 of 5)"
        for name, buffer in before.items():
            assert status["buffers"][name]["count"] >= buffer["count"]


@pytest.mark.slow
def test_a_killed_coordinator_goes_on_with_buffer_and_counters(tmp_path):
    with parallel_run(tmp_path, changed=OFTEN_SAVED, gated=True) as run:
        state = run.exp / "ckpt" / "coordinator_state.pth.tar"
        before = run.wait_for("state", lambda s: s["train_iter"] >= 50 and state.exists())
        saved = state.stat().st_mtime_ns
        run.wait_for("a later state", lambda s: state.stat().st_mtime_ns > saved)
        pid = run.kill("coordinator")
        after = run.wait_for("new coordinator", lambda s: run.pid("coordinator") != pid and s)
        run.wait_for("updates", lambda s: s["train_iter"] > after["train_iter"], RECOVERY)
        assert after["envstep"] >= 0.5 * before["envstep"]
        count = {name: buffer["count"] for name, buffer in before["buffers"].items()}
        for name, buffer in after["buffers"].items():
            assert buffer["count"] >= 0.5 * count[name]
        _assert_converges(run)


@pytest.mark.slow
def test_stopped_workers_that_go_on_are_taken_back(tmp_path):
    changed = {"HEARTBEAT": 1.0, "HEARTBEAT_TOLERANCE": 2.0}
    with parallel_run(tmp_path, changed=changed, stop_value=100) as run:
        run.wait_until_it_learns()
        for name in ("collector0", "learner0"):
            _stop_until_lost(run, name)
            _assert_at_work(run, name)


def _stop_until_lost(run: ParallelRun, name: str) -> None:
    pid = run.kill(name, signal.SIGSTOP)
    try:
        run.wait_for(
            f"loss of {name}", lambda s: any(f["worker"] == name for f in s["failures"]), RECOVERY
        )
    finally:
        os.kill(pid, signal.SIGCONT)


def _assert_at_work(run: ParallelRun, name: str) -> None:
    iters = run.status()["train_iter"]
    run.wait_for(
        "worker at work",
        lambda s: s["workers"][name]["state"] == "running" and s["train_iter"] > iters,
        RECOVERY,
    )


@pytest.mark.slow
def test_killed_processes_of_a_learner_are_replaced(tmp_path):
    with parallel_run(tmp_path, stop_value=100, system={"learner_gpu_num": 2}) as run:
        for count, name in enumerate(("learner0", "learner1"), 1):
            run.wait_until_it_learns()
            pid = run.pid_in_team(name)
            os.kill(pid, signal.SIGKILL)
            line = f"{name}: was killed by SIGKILL"
            run.wait_for("line", lambda s, line=line: line in run.output, RECOVERY)
            before = run.status()["train_iter"]
            run.wait_for(
                "updates", lambda s, before=before: s["train_iter"] > before + 20, 2 * RECOVERY
            )
            assert run.pid_in_team(name) != pid
            causes = _failures(run, "learner_aggregator0")
            assert len(causes) == count
            assert name in causes[-1]


@pytest.mark.slow
def test_a_killed_learner_goes_on_and_reads_the_chunks_of_its_buffer_again(tmp_path):
    with parallel_run(tmp_path, changed=OFTEN_SAVED, gated=True) as run:
        before = run.wait_for(
            "state", lambda s: s["train_iter"] >= 50 and saved_iteration(run.exp) > 0
        )
        pid = run.kill("learner0")
        after = run.wait_for(
            "updates of the new learner",
            lambda s: (
                s["workers"]["learner0"]["pid"] != pid and s["train_iter"] > before["train_iter"]
            ),
            RECOVERY,
        )
        assert _failures(run, "learner0")
        assert after["buffers"].keys() == before["buffers"].keys()
        for name, buffer in before["buffers"].items():
            assert after["buffers"][name]["count"] >= buffer["count"]
        assert "were dropped" not in run.output
        _assert_converges(run)
