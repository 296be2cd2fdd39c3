"""What hangs is reported and ends a run with its state saved: an env, an update, code in C."""

import json
import os
import re
import signal
import time

import pytest

from ding.utils import read_file
from ding.utils.run_files import read_record
from tests.children import start_python
from tests.entry.runs import run_json

SCRIPT = """
import json, sys
import tests.entry.hanging as hanging
from ding.utils import durations
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from tests.entry.runs import walk_config
options = json.loads(sys.argv[1])
if options.get("in_haste", True):
    for name in ("LEAVE_STEP", "LEAVE_UPDATE", "MAIN_THREAD_LOST", "CLOSE_LIMIT"):
        setattr(durations, name, 0.5 * getattr(durations, name))
if "limit" in options:
    durations.WARN_ENV, durations.ENV_LIMIT = 0.5, options["limit"]
exec(options.get("durations", ""))
hanging.HANG.update(options["hang"])
config = walk_config(manager=options["manager"], policy=options.get("policy", "dqn"))
config[0].env.manager.update(options.get("settings", {}))
config[0].env.stop_value = 1e9
envs = [hanging.HangingEnv, [{}, {"number": 1}], [{"judge": True}, {"judge": True}]]
serial_pipeline(config, env_setting=envs, max_train_iter=10**6)
"""


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class Run:
    """A run in another process that has reached the place where it hangs."""

    def __init__(self, manager="base", **options):
        self.process = start_python(SCRIPT, json.dumps({"manager": manager, **options}))
        wait_for(lambda: os.path.exists("hangs") or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()[0]

    def end(self, within):
        start = time.monotonic()
        output, _ = self.process.communicate(timeout=60)
        assert time.monotonic() - start < within, output
        return self.process.returncode, output


def assert_saved(at_least=20):
    state = read_file("run/ckpt/resume.pth.tar")
    assert state["learner"]["last_iter"] >= at_least
    assert state["learner"]["last_iter"] == run_json()["train_iter"]


PLACES = [
    ("base", "step", "c"),
    ("base", "reset", "sleep"),
    ("base", "evaluation", "loop"),
    ("subprocess", "step", "c"),
    ("base", "update", "c"),
    ("base", "close", "sleep"),
]


@pytest.mark.slow
# A busy machine is granted twice the five seconds.
@pytest.mark.parametrize(
    ("manager", "where", "how", "in_haste"),
    [
        *((*place, True) for place in PLACES),
        pytest.param(*PLACES[0], False, marks=pytest.mark.slow),
    ],
)
def test_signal_ends_a_run_that_hangs(manager, where, how, in_haste):
    number = signal.SIGINT
    run = Run(manager, hang=dict(where=where, how=how, at=60), in_haste=in_haste)
    time.sleep(0.3)  # it is in the middle of it
    os.kill(run.process.pid, number)
    code, output = run.end(within=10)
    assert code == 128 + number, output
    assert (run_json()["status"], run_json()["reason"]) == ("interrupted", "Ctrl-C")
    assert "interrupted: Ctrl-C" in output
    assert "Traceback" not in output
    assert not os.path.exists("run/.run_lock")
    assert_saved()


@pytest.mark.slow
def test_a_disk_that_hangs_is_named_and_does_not_hold_up_a_signal():
    settings = "durations.SAVE_INTERVAL = 0.5; durations.DISK_STALL = 0.5"
    run = Run(hang=dict(where="disk"), durations=settings)
    time.sleep(2)
    os.kill(run.process.pid, signal.SIGINT)
    code, output = run.end(within=10)
    assert code == 130, output
    path = os.path.abspath("run/ckpt/resume.pth.tar")
    assert f"\nwriting {path} has made no progress for " in output
    assert f"interrupted: Ctrl-C; not saved: writing {path} has made no progress" in output
    assert read_record("run").reason.startswith(f"Ctrl-C; not saved: writing {path}")
    assert "policy has been at one update" not in output
    assert read_file(path)["learner"]["last_iter"] >= 1  # the state before


@pytest.mark.slow
@pytest.mark.parametrize("number", [None, signal.SIGINT])
def test_env_that_keeps_the_interpreter_ends_the_run_with_a_traceback(number):
    run = Run(limit=5.0, hang=dict(where="step", how="locked", at=60))
    if number is not None:
        os.kill(run.process.pid, number)
    code, output = run.end(within=40)
    assert code == 1, output
    assert "Timeout (0:00:05" in output, output
    assert re.search(r'hanging.py", line \d+ in hang', output), output
    assert read_file("run/ckpt/resume.pth.tar")["learner"]["last_iter"] >= 20


@pytest.mark.slow
def test_environments_may_keep_the_interpreter_for_longer_while_they_are_made():
    run = Run(limit=2.0, hang=dict(where="making", how="hold", at=0))
    wait_for(lambda: os.path.exists("goes_on"))
    wait_for(lambda: os.path.exists("run/metrics.jsonl"))
    os.kill(run.process.pid, signal.SIGTERM)
    code, output = run.end(within=10)
    assert code == 143, output
    assert "Timeout" not in output


@pytest.mark.slow
def test_run_that_is_stopped_for_a_while_goes_on():
    run = Run(limit=1.0, hang=dict(where="step", how="pause", at=60),
              settings=dict(step_timeout=60, reset_timeout=60))  # fmt: skip
    os.kill(run.process.pid, signal.SIGSTOP)
    time.sleep(4)
    os.kill(run.process.pid, signal.SIGTERM)
    time.sleep(2)
    os.kill(run.process.pid, signal.SIGCONT)
    code, output = run.end(within=15)
    assert code == 143, output
    assert_saved()


def test_second_signal_does_not_wait():
    run = Run(hang=dict(where="step", how="sleep", at=60))
    os.kill(run.process.pid, signal.SIGTERM)
    time.sleep(0.7)
    os.kill(run.process.pid, signal.SIGTERM)
    code, output = run.end(within=8)
    assert code == 143, output
    assert_saved()


@pytest.mark.slow
def test_hang_while_environments_are_made_does_not_hold_up_a_signal():
    run = Run(hang=dict(where="init", how="c", at=0))
    time.sleep(0.3)
    os.kill(run.process.pid, signal.SIGTERM)
    code, output = run.end(within=10)
    assert code == 143, output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manager", "where", "how"),
    [
        ("base", "step", "c"),
        pytest.param("subprocess", "reset", "sleep", marks=pytest.mark.slow),
        pytest.param("gym_vector", "step", "loop", marks=pytest.mark.slow),
    ],
)
def test_env_that_never_returns_is_reported_and_ends_the_run(manager, where, how):
    run = Run(manager, limit=2.0, hang=dict(where=where, how=how, at=60))
    code, output = run.end(within=20)
    assert code == 1, output
    warned = re.search(r"env(s 0,)? 1 .*: no answer for \d s; after 2 s the run ends", output)
    assert warned, output
    record = run_json()
    assert record["status"] == "failed"
    assert re.match(r"EnvTimeoutError: env(s 0,)? 1 .*no answer for 2 s", record["reason"])
    assert "failed: EnvTimeoutError" in output
    assert_saved()


def test_gym_vector_heeds_its_limits():
    run = Run("gym_vector", hang=dict(where="step", how="sleep", at=60),
              settings=dict(step_timeout=0.5))  # fmt: skip
    code, output = run.end(within=20)
    assert code == 1, output
    assert "env 1 (HangingEnv) did not finish step() within step_timeout=0.5 s" in output
    assert run_json()["reason"].startswith("EnvTimeoutError: env 1")
    assert_saved()


@pytest.mark.slow
def test_infinite_limit_lets_an_env_take_its_time():
    run = Run(limit=1.0, hang=dict(where="step", how="pause", at=60),
              settings=dict(step_timeout=float("inf"), reset_timeout=float("inf")))  # fmt: skip
    wait_for(lambda: os.path.exists("goes_on"))
    os.kill(run.process.pid, signal.SIGTERM)
    code, output = run.end(within=10)
    assert code == 143, output
    assert re.search(r"env 1 .*: no answer for \d s\n", output)
