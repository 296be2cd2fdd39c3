"""The parent of a parallel run: deaths, signals and its own end, with parts that only live."""

import copy
import json
import os
import signal
import time
from pathlib import Path

import pytest

from ding.config.utils import (
    parallel_test_create_config,
    parallel_test_main_config,
    parallel_test_system_config,
)
from ding.entry import parallel_entry, part_runs
from ding.utils import durations
from tests.children import forked, is_alive, wait_for
from tests.entry.fake_parts import FakeCoordinator, FakeWorker


def run_fakes(resume=True, **system_options):
    """As a user's script would."""
    part_runs.Coordinator = FakeCoordinator
    part_runs.make_service = lambda kind, entry: FakeWorker(entry)
    main = copy.deepcopy(parallel_test_main_config)
    main.exp_name = "run"
    main.policy.learn.learner.learner_num = 1
    main.policy.learn.resume_training = resume
    system = copy.deepcopy(parallel_test_system_config)
    system.update(path_data="run/data", path_policy="elsewhere/policy", **system_options)
    parallel_entry.parallel_pipeline((main, parallel_test_create_config, system), 0)


NAMES = ("coordinator", "learner0", "collector0", "collector1")


class Run:
    """A run of fake parts in its own folder ``run``."""

    def __init__(self, orders=None, wait=True, **options):
        os.makedirs("run", exist_ok=True)
        self.exp = Path("run")
        for name, order in (orders or {}).items():
            self.order(name, order)
        # An experiment's folder that is there already would get another name if it were not for
        # resuming.
        self.process = forked(run_fakes, **options)
        if wait:
            wait_for(lambda: all(self.pids(name) for name in NAMES) or self.ended)
            assert not self.ended, self.output

    @property
    def ended(self):
        return not self.process.is_alive()

    @property
    def output(self):
        return Path("output.txt").read_text()

    def order(self, name, order):
        temporary = self.exp / f"{name}.new"
        temporary.write_text(order)
        temporary.rename(self.exp / f"{name}.order")

    def pids(self, name):
        """Of the processes that this part has had."""
        path = self.exp / f"{name}.pid"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def said(self, name="coordinator"):
        return (self.exp / f"{name}.said").read_text()

    def everybody(self):
        return [pid for name in NAMES for pid in self.pids(name)]

    def wait_for_start(self, name, times):
        wait_for(lambda: len(self.pids(name)) >= times or self.ended)
        assert not self.ended, self.output

    def end(self, within=40.0):
        """Exit status and output; all parts have ended in that time and nothing is left."""
        wait_for(lambda: self.ended or not any(map(is_alive, self.everybody())), within)
        self.process.join(20)
        assert not any(map(is_alive, self.everybody()))
        assert not (self.exp / "run.key").exists()
        assert not (self.exp / "data").exists()
        assert not Path("elsewhere").exists()
        return self.process.exitcode, self.output

    def converge(self):
        self.order("coordinator", "converged enough")
        status, output = self.end()
        assert (status, output.splitlines()[-1]) == (0, "converged: enough")
        return output


@pytest.fixture
def run():
    runs = []

    def start(*args, **options):
        runs.append(Run(*args, **options))
        return runs[-1]

    yield start
    for one in runs:
        one.process.kill()
        one.process.join()
        for pid in filter(is_alive, one.everybody()):
            os.kill(pid, signal.SIGKILL)


def test_a_run_that_converges(run):
    one = run(resume=True)
    assert oct(os.stat("run/run.key").st_mode)[-3:] == "600"
    wait_for(lambda: all(f"{name} came" in one.said() for name in NAMES[1:]))
    one.converge()
    assert one.said().splitlines()[-1] == "closed"
    record = json.loads((one.exp / "run.json").read_text())
    assert record["status"] == "converged"
    assert "run.key" not in (one.exp / "total_config.py").read_text()


@pytest.mark.parametrize("name", ["collector0", "learner0"])
def test_a_killed_worker_is_started_again(run, name):
    one = run()
    os.kill(one.pids(name)[0], signal.SIGKILL)
    one.wait_for_start(name, 2)
    one.converge()
    assert f"{name} was killed by SIGKILL; starting it again (1 of 5)" in one.said()


def test_a_worker_that_ends_with_an_error_is_started_again(run):
    one = run()
    one.order("collector0", "die")
    one.wait_for_start("collector0", 2)
    one.converge()
    assert "collector0 ended with status 3: a last line; starting it again" in one.said()
    assert "a last line" in Path("run/log/collector0/output.txt").read_text()


def test_a_worker_that_cannot_go_on_is_started_again(run):
    one = run()
    one.order("learner0", "give up")
    wait_for(lambda: "learner0 ended with status 1: cannot join" in one.said())
    os.remove("run/learner0.order")
    one.converge()


def test_a_killed_coordinator_is_started_again_on_its_port(run):
    one = run()
    wait_for(lambda: "learner0 came" in one.said())
    (port,) = (line for line in one.said("learner0").splitlines() if "coordinator=" in line)
    os.kill(one.pids("coordinator")[0], signal.SIGKILL)
    one.wait_for_start("coordinator", 2)
    assert f"resume=True port={port.partition('=')[2]}" in one.said().splitlines()
    wait_for(lambda: one.said().count("learner0 came") == 2)
    output = one.converge()
    assert "coordinator was killed by SIGKILL; starting it again (1 of 5)" in output
    assert len(one.pids("learner0")) == 1


def test_restarts_are_bounded(run):
    one = run(max_restart=1)
    for times in (1, 2):
        one.wait_for_start("learner0", times)
        os.kill(one.pids("learner0")[-1], signal.SIGKILL)
    status, output = one.end()
    assert status == 1
    reason = "failed: learner0 died 2 times, at last: was killed by SIGKILL"
    assert reason in output.splitlines()
    assert output.splitlines()[-1].startswith("ding.utils.errors.RunError: learner0 died 2 times")


@pytest.mark.parametrize("how", ["was killed by SIGKILL", "left"])
def test_a_run_goes_on_without_one_of_its_collectors(run, how):
    one = run(max_restart=0)
    if how == "left":
        one.order("collector0", "leave")
    else:
        os.kill(one.pids("collector0")[0], signal.SIGKILL)
    wait_for(lambda: f"collector0 {how}; continuing without it" in one.said())
    one.converge()
    assert len(one.pids("collector0")) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_part_that_cannot_be_built_ends_the_run_with_its_error(run, name):
    one = run({name: "no-start"}, wait=False)
    status, output = one.end()
    assert status == 1
    assert f"failed: {name}: ValueError: {name} cannot be built" in output.splitlines()


@pytest.fixture
def in_haste(monkeypatch):
    for name in ("COORDINATOR_STOPPING", "ALL_STOPPING", "PART_STOP"):
        monkeypatch.setattr(durations, name, 0.4 * getattr(durations, name))


@pytest.mark.slow
def test_a_worker_that_does_not_come_up_is_killed(run, in_haste, monkeypatch):
    monkeypatch.setattr(durations, "SPAWN_START", 10.0)
    one = run({"collector1": "hang-at-start"}, wait=False, max_restart=0)
    wait_for(lambda: (one.exp / "coordinator.said").exists())
    wait_for(lambda: "collector1 has not joined for 10 s; continuing without it" in one.said())
    one.converge()


@pytest.mark.parametrize(
    ("number", "status", "word"),
    [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")],
)
def test_a_signal_ends_everybody_in_good_order(run, number, status, word):
    one = run()
    os.kill(one.process.pid, number)
    assert one.end()[0] == status
    assert f"stop interrupted {word}" in one.said()
    for name in NAMES:
        assert "closed" in one.said(name)
    assert json.loads((one.exp / "run.json").read_text())["reason"] == word


@pytest.mark.slow
def test_parts_that_do_not_listen_are_killed_within_five_seconds(run):
    one = run({"coordinator": "deaf", "collector0": "deaf"})
    os.kill(one.process.pid, signal.SIGINT)
    status, output = one.end(within=5)
    assert status == 130
    assert output.splitlines()[-1].startswith("interrupted: Ctrl-C")
    assert json.loads((one.exp / "run.json").read_text())["status"] == "interrupted"


@pytest.mark.slow
def test_a_second_signal_ends_at_once(run, monkeypatch):
    for name in ("COORDINATOR_STOPPING", "ALL_STOPPING", "PART_STOP"):
        monkeypatch.setattr(durations, name, 30.0)
    one = run({"coordinator": "deaf"})
    os.kill(one.process.pid, signal.SIGINT)
    time.sleep(0.7)  # sooner it would be taken for the same request
    os.kill(one.process.pid, signal.SIGINT)
    status, output = one.end(within=15)
    assert status == 130
    assert output.splitlines()[-1] == "interrupted: Ctrl-C"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["deaf", "stopped"])
def test_children_do_not_outlive_their_parent(run, in_haste, how):
    one = run({"collector0": "deaf"} if how == "deaf" else None)
    if how == "stopped":
        os.kill(one.pids("collector0")[0], signal.SIGSTOP)
    one.process.kill()
    one.process.join()
    wait_for(lambda: not any(map(is_alive, one.everybody())))
    assert "stop interrupted the process that started the run has ended" in one.said()
    wait_for(lambda: not Path("elsewhere").exists())
    assert not set(os.listdir("run")) & {"run.key", "data", "coordinator.json"}


def test_processes_that_train_together_come_as_one(run):
    one = run(learner_gpu_num=2)
    wait_for(lambda: "learner_aggregator0 came" in one.said())
    os.kill(one.pids("learner1")[0], signal.SIGKILL)
    one.wait_for_start("learner1", 2)
    one.converge()


def test_the_signal_is_a_field_of_the_ending(run):
    one = run(orders={"coordinator": "interrupted Ctrl-C"}, wait=False)
    status, output = one.end()
    assert output.splitlines()[-1] == "interrupted: Ctrl-C"
    assert status == 1  # whatever its words: there was no signal
