"""Signals end a run in good order: saved, closed, with its reason and its exit status."""

import contextlib
import json
import os
import signal
import time

import pytest

from ding.entry import serial_pipeline
from ding.entry.quick_config import quick_config
from ding.entry.run.signals import StopNow, Stopping, StopSignal
from ding.utils import durations, read_file
from ding.utils.callbacks import RunCallback
from tests.children import start_python
from tests.entry.runs import episodes, metrics, run_json, walk_config, walk_envs

SCRIPT = """
import sys, json, os
from ding.entry import serial_pipeline
from tests.entry.runs import walk_config, walk_envs
os.setpgid(0, 0)
options = json.loads(sys.argv[1])
config = walk_config(manager=options["manager"])
serial_pipeline(config, env_setting=walk_envs(**options["collector"]), max_train_iter=10**6)
"""


def wait_for(condition, seconds=40.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Run:
    """A run in another process, once its environment has reached a step."""

    def __init__(self, manager, **options):
        self.process = start_python(SCRIPT, json.dumps({"manager": manager, **options}))
        wait_for(lambda: os.path.exists("marker") or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()[0]

    def signal(self, number, group=False):
        os.kill(-self.process.pid if group else self.process.pid, number)

    def end(self, within):
        start = time.monotonic()
        output, _ = self.process.communicate(timeout=30)
        assert time.monotonic() - start < within, output
        return self.process.returncode, output

    def assert_nobody_is_left(self):
        def gone():
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return True
            return False

        wait_for(gone, 5)


@pytest.mark.parametrize(
    ("number", "status", "manager", "group"),
    [
        (signal.SIGINT, 130, "base", False),
        (signal.SIGTERM, 143, "subprocess", True),
    ],
)
def test_signal_saves_and_ends_with_its_status(number, status, manager, group):
    run = Run(manager, collector=dict(fault="mark", at=100))
    run.signal(number, group)
    code, output = run.end(within=10)
    assert code == status, output
    run.assert_nobody_is_left()
    name = {130: "Ctrl-C", 143: "SIGTERM"}[status]
    assert (run_json()["status"], run_json()["reason"]) == ("interrupted", name)
    assert f"interrupted: {name}" in output
    assert "Traceback" not in output
    assert "  continue    in Python:" in output  # as it got its environments
    before = read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"]
    assert before == run_json()["train_iter"]
    config = walk_config()
    config[0].policy.learn.resume_training = True
    serial_pipeline(config, env_setting=walk_envs(), max_train_iter=before + 5)
    assert before + 5 <= run_json()["train_iter"] < before + 9


def sent(number, at, **options):
    """Config of an environment that sends this process a signal."""
    return dict(fault="signal", signum=number, pid=os.getpid(), at=at, **options)


def run_until_signal(manager, envs, status, **learn):
    config = walk_config(manager=manager)
    config[0].policy.learn.update(learn)
    with pytest.raises(SystemExit) as end:
        serial_pipeline(config, env_setting=envs, max_train_iter=10**6)
    assert end.value.code == status
    assert run_json()["status"] == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_signal_does_not_wait_for_an_evaluation(manager):
    evaluator = sent(signal.SIGTERM, at=12, seconds=0.1)
    run_until_signal(manager, walk_envs(evaluator), status=143)
    state = read_file("run/ckpt/resume.pth.tar")
    # It is due again when the run continues.
    assert state["evaluator"]["last_eval_iter"] < state["learner"]["last_iter"]
    judged = [row for row in metrics() if "evaluator_iter/reward_mean" in row]
    assert len(judged) == 1


def test_the_command_after_a_signal_in_the_last_evaluation_has_the_limit(capsys, monkeypatch):
    monkeypatch.setenv("DING_CONSOLE", "plain")

    class Signal(RunCallback):
        def on_episode(self, event):
            if event.source == "evaluator" and event.train_iter:
                os.kill(os.getpid(), signal.SIGTERM)

    config = quick_config("CartPole-v1", "dqn")
    with pytest.raises(SystemExit):
        serial_pipeline(config, max_env_step=200, callbacks=[Signal()])
    assert run_json(config[0]["exp_name"])["envstep"] >= 200
    assert "--env-step 200 --resume" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["base", "subprocess"])
def test_signal_lets_a_collection_end_but_not_for_long(manager, monkeypatch):
    monkeypatch.setattr(durations, "COLLECT_GRACE", 0.4)
    run_until_signal(manager, walk_envs(**sent(signal.SIGINT, at=1, seconds=0.3)), status=130)
    # Eight samples take four steps of both environments: what was begun does not count.
    assert run_json()["envstep"] == 0


def test_signal_comes_between_two_of_a_rounds_very_many_updates(monkeypatch):
    monkeypatch.setattr(durations, "COLLECT_GRACE", 0.4)
    envs = walk_envs(**sent(signal.SIGTERM, at=3))
    run_until_signal("base", envs, status=143, update_per_collect=10**6)
    last = run_json()["train_iter"]
    assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] == last > 0
    # In good order: not by the thread that ends a run whose main thread is lost.
    assert os.path.exists(f"run/ckpt/iteration_{last}.pth.tar")


@pytest.mark.slow
def test_killed_run_goes_on_from_its_last_state():
    run = Run("subprocess", collector=dict(fault="mark", at=300))
    run.signal(signal.SIGKILL)
    run.process.communicate(timeout=10)
    run.assert_nobody_is_left()
    assert run_json()["status"] == "running"
    last = read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"]
    assert last >= 20
    config = walk_config()
    config[0].policy.learn.resume_training = True
    serial_pipeline(config, env_setting=walk_envs(), max_train_iter=last + 5)
    assert run_json()["train_iter"] >= last + 5
    assert metrics()
    assert episodes()


def swallow(number):
    """What a destructor does, or an import that catches everything."""
    with contextlib.suppress(BaseException):
        os.kill(os.getpid(), number)


class TestStopSignal:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_what_was_swallowed_is_raised_by_the_next(self, number):
        before = signal.getsignal(number)
        with StopSignal():
            swallow(number)
            with pytest.raises(StopNow) as caught, StopSignal():
                raise AssertionError("it is not entered")
            assert caught.value.ending.exit_status == 128 + number
        assert signal.getsignal(number) is before

    def test_impatient_signal_is_raised(self):
        with pytest.raises(StopNow), StopSignal():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    def test_patient_signal_is_noted(self):
        with StopSignal() as stop:
            stop.patient = True
            stop.check(0)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)  # the same request, forwarded again
            assert (stop.name, stop.ending.exit_status) == ("Ctrl-C", 130)
            stop.check(grace=60)
            with pytest.raises(Stopping):
                stop.check(grace=0)

    def test_handlers_are_put_back(self):
        before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
        with StopSignal():
            assert signal.getsignal(signal.SIGINT) != before[0]
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
