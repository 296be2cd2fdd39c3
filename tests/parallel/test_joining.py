"""Workers that come and go while a parallel run is under way."""

import json
import os
import signal

import pytest

from tests.children import start_ding
from tests.parallel.runs import ParallelRun, parallel_run

pytestmark = pytest.mark.timeout(120)


def _collector(run: ParallelRun, name: str, config: str = "run/total_config.py"):
    """A further collector, started as a user would in another shell."""
    command = f"-m dist -M collector -c {config} --module-name {name} --plain"
    return start_ding(*command.split(), folder=run.folder)


@pytest.fixture
def ended():
    """Processes that are killed at the end of the test."""
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def _joining(run: ParallelRun, *options: str):
    """A further worker that has no config, in another folder than the run."""
    at = json.loads((run.exp / "coordinator.json").read_text())
    address = f"{at['host']}:{at['port']}"
    elsewhere = run.folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return start_ding(
        "worker", "--join", address, "--run", str(run.exp), *options, folder=elsewhere
    )


@pytest.mark.slow
def test_two_collectors_join_and_one_leaves(tmp_path, ended):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        ended += [_collector(run, "collector7"), _joining(run, "--name", "collector8")]
        names = ("collector7", "collector8")
        run.wait_for(
            "both at work",
            lambda s: all(s["workers"][name]["state"] == "running" for name in names),
        )
        ended[0].send_signal(signal.SIGTERM)
        assert ended[0].wait(30) == 143
        run.wait_for(
            "one left", lambda s: [name in s["workers"] for name in names] == [False, True]
        )
        steps = run.status()["envstep"]
        run.wait_for("more steps", lambda s: s["envstep"] > steps + 500)
        os.kill(run.process.pid, signal.SIGTERM)
        assert run.end(20) == 143
        # It ends with the run that it works for, and for the same reason.
        assert ended[1].wait(20) in (0, 143)
        assert run.data_files() == []


@pytest.mark.slow
def test_workers_without_a_config_get_names_and_train(tmp_path, ended):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        ended += [_joining(run), _joining(run), _joining(run, "--kind", "learner")]
        new = {"collector2", "collector3", "learner1"}
        run.wait_for("all are there", lambda s: new <= s["workers"].keys())
        run.wait_for("one collects", lambda s: s["workers"]["collector2"]["state"] == "running")
        misnamed = _joining(run, "--kind", "learner", "--name", "collector9")
        assert misnamed.wait(60) == 1
        os.kill(run.process.pid, signal.SIGTERM)
        assert run.end(20) == 143
        for process in ended:
            assert process.wait(20) in (0, 143)
        assert not any((tmp_path / "elsewhere").iterdir())


def test_a_worker_without_the_key_is_refused(tmp_path):
    with parallel_run(tmp_path, stop_value=100) as run:
        run.wait_until_it_learns()
        key = run.exp / "run.key"
        key.write_text("another key\n")
        stranger = _collector(run, "collector7")
        assert stranger.wait(60) == 1
        assert "collector7" not in run.status()["workers"]
