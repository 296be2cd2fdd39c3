"""Environments, files and tasks that fail in the middle of a parallel run."""

import json
import shutil
import socket
import time

import pytest

from tests.parallel.runs import parallel_run

pytestmark = pytest.mark.timeout(120)


@pytest.mark.slow
def test_an_environment_that_always_raises_ends_the_run_with_its_words(tmp_path):
    with parallel_run(tmp_path, stop_value=100, fault={"fault": "raise", "at": 1}) as run:
        assert run.end() == 1
        assert "the env's own words" in run.last_line
        run.wait_until_alone()
        assert run.data_files() == []


@pytest.mark.slow
def test_an_environment_that_raises_now_and_then_costs_a_task_each_time(tmp_path):
    with parallel_run(tmp_path, stop_value=100, fault={"fault": "raise", "at": 300}) as run:
        run.wait_for("failure", lambda s: any("own words" in f["cause"] for f in s["failures"]))
        steps = run.status()["envstep"]
        run.wait_for("more steps", lambda s: s["envstep"] > steps)


@pytest.mark.slow
def test_an_environment_that_hangs_is_reported(tmp_path):
    changed = {"ENV_PROCESS_LIMIT": 1.5, "COLLECTOR_STEP_LIMIT": 3.0, "STEP_TIMEOUT": 4.0}
    fault = {"fault": "hang", "at": 300}
    with parallel_run(tmp_path, changed=changed, stop_value=100, fault=fault) as run:
        run.wait_for("failure", lambda s: s["failures"])


@pytest.mark.slow
def test_files_of_samples_that_vanish_or_break(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        broken = 0
        for _ in range(200):
            for number, path in enumerate(list((run.exp / "data").iterdir())[:4]):
                if path.name.startswith("."):
                    continue
                try:
                    if number % 2:
                        path.unlink()
                    else:
                        path.write_bytes(path.read_bytes()[:40])
                except FileNotFoundError:
                    continue
                broken += 1
            time.sleep(0.01)
        assert broken > 20
        iters = run.status()["train_iter"]
        run.wait_for("more updates", lambda s: s["train_iter"] > iters + 50)


@pytest.mark.slow
def test_weights_that_are_broken_are_not_used(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        for _ in range(20):
            for path in (run.exp / "policy").iterdir():
                if not path.name.startswith("."):
                    path.write_bytes(b"broken")
            time.sleep(0.05)
        steps = run.status()["envstep"]
        run.wait_for("more steps", lambda s: s["envstep"] > steps + 100)


@pytest.mark.slow
def test_little_space_for_samples_is_enough(tmp_path):
    limit = 200_000
    with parallel_run(
        tmp_path, stop_value=100, system={"coordinator": {"path_data_limit": limit}}
    ) as run:
        run.wait_until_it_learns()
        for _ in range(100):
            held = sum(path.stat().st_size for path in (run.exp / "data").iterdir())
            assert held <= limit
            time.sleep(0.02)
        steps = run.status()["envstep"]
        run.wait_for("more steps", lambda s: s["envstep"] > steps + 500)


FAULTY_POLICY = {"type": "parallel_faulty", "import_names": ["tests.parallel.envs"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"), [("raise", "the policy's own words"), ("nan", "total_loss = NaN")]
)
def test_a_policy_that_cannot_learn_ends_the_run_with_the_cause(tmp_path, fault, words):
    with parallel_run(
        tmp_path, stop_value=100, create={"policy": FAULTY_POLICY}, other={"fault": fault}
    ) as run:
        assert run.end(60) == 1
        assert run.last_line.startswith("failed: ")
        assert words in run.last_line
        run.wait_until_alone()
        assert run.data_files() == []


@pytest.mark.slow
def test_an_update_without_end_is_given_up(tmp_path):
    with parallel_run(
        tmp_path,
        changed={"ITERATION_TIMEOUT": 3.0},
        stop_value=100,
        create={"policy": FAULTY_POLICY},
        other={"fault": "hang"},
    ) as run:
        status = run.wait_for("failure", lambda s: s["failures"])
        assert status["failures"][0]["worker"] == "learner0"
        assert "iteration 29 of learner0 has been under way" in status["failures"][0]["cause"]
        run.wait_for("more updates", lambda s: s["train_iter"] > 50)


@pytest.mark.slow
def test_a_slow_network_slows_it_down_and_no_more(tmp_path):
    create = {"env": {"type": "parallel_walk", "import_names": ["tests.parallel.envs", SLOW]}}
    with parallel_run(tmp_path, stop_value=100, create=create) as run:
        iters = run.wait_until_it_learns(20)["train_iter"]
        status = run.wait_for("more updates", lambda s: s["train_iter"] > iters + 100)
        assert status["failures"] == []


SLOW = "tests.parallel.slow"


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with parallel_run(tmp_path, system={"coordinator": {"port": port}}) as run:
            assert run.end() == 1
            assert f"127.0.0.1:{port}: the port is taken" in run.last_line
            run.wait_until_alone()
        record = json.loads((run.exp / "run.json").read_text())
        assert record["status"] == "failed"
        assert f"127.0.0.1:{port}: the port is taken" in record["reason"]


@pytest.mark.slow
def test_a_log_folder_that_is_removed_hangs_nothing(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        shutil.rmtree(run.exp / "log")
        run.kill("learner0")
        iters = run.status()["train_iter"]
        run.wait_for("more updates", lambda s: s["train_iter"] > iters + 100)
