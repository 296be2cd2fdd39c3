"""Several seeds: in turn or side by side, and the summary at the end."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from click.testing import CliRunner

from ding.entry.cli import main
from ding.entry.run.signals import StopNow
from ding.entry.seed_runs import Commands, train_in_turn
from ding.utils import durations
from ding.utils.console import print_line
from ding.utils.run_files import read_record
from ding.utils.run_log import record_or_empty
from tests.board.run_folders import make_run
from tests.children import wait_for
from tests.docs.fences import ROOT

# Three processes import everything.
pytestmark = pytest.mark.timeout(180)

CONFIG = """
main_config = dict(
    exp_name="run",
    env=dict(
        env_id="CartPole-v1", collector_env_num=2, evaluator_env_num=1, n_evaluator_episode=1,
        stop_value={stop},
    ),
    policy=dict(
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[8]),
        learn=dict(batch_size=8, update_per_collect=1),
        collect=dict(n_sample=8),
    ),
)
create_config = dict(
    env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type="dqn")
)
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.py"
    path.write_text(CONFIG.format(stop=10_000))
    return str(path)


@pytest.mark.parametrize(
    ("given", "seeds"),
    [(["0-2"], "0 1 2"), (["4,1-2"], "4 1 2"), (["7", "0-1"], "7 0 1"), (["3-3"], "3")],
)
def test_seeds_may_be_ranges(config, monkeypatch, given, seeds):
    found = []
    monkeypatch.setattr("ding.entry.cli_runs.run", lambda options: found.extend(options["seeds"]))
    options = [word for text in given for word in ("-s", text)]
    assert CliRunner().invoke(main, ["-c", config, *options]).exit_code == 0
    assert found == [int(seed) for seed in seeds.split()]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("2-1", "counts down"),
        ("0-1,1", "is given twice"),
        ("0-1000000", "more than 1000 seeds"),
        ("-1", "is not between"),
        ("1-", "is not a whole number"),
        ("a-b", "is not a whole number"),
    ],
)
def test_wrong_seeds_are_said(config, given, complaint):
    done = CliRunner().invoke(main, ["-c", config, f"--seed={given}"])
    assert done.exit_code == 2
    assert complaint in " ".join(done.output.replace("│", "").split())


@pytest.mark.parametrize("options", [["--resume"], ["-m", "eval"], ["-m", "dist", "-M", "config"]])
def test_jobs_are_for_new_runs(config, options):
    done = CliRunner().invoke(main, ["-c", config, "--jobs", "2", *options])
    assert done.exit_code == 2
    assert "--jobs" in done.output


def test_summary_has_last_returns_and_a_picture(config):
    done = CliRunner().invoke(main, ["-c", config, "-s", "0-1", "--train-iter", "1", "--quiet"])
    assert done.exit_code == 0
    lines = done.output[done.output.index("seed  status") :].splitlines()
    assert lines[0].index("last return") < lines[0].index("best return")
    assert {line.split()[0] for line in lines[1:3]} == {"0", "1"}
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        assert not os.path.exists("run_returns.png")
    else:
        assert os.path.exists("run_returns.png")


def test_the_table_ranks_converged_runs_by_steps_and_others_by_their_end(tmp_path, capsys):
    late = [0, 20, 20, 20, 20, 20, 20, 100]
    folders = {
        3: make_run(tmp_path / "lucky", returns=[500, 10, 10, 10, 10, 10], status="finished"),
        4: tmp_path / "never began",
        5: make_run(tmp_path / "steady", returns=[0, 90, 90, 90, 90, 90], status="finished"),
        6: make_run(tmp_path / "late", returns=late, envstep=700),
        7: make_run(tmp_path / "early", returns=[0, 100], envstep=100),
    }
    train_in_turn("run", list(folders), False, lambda seed, folder: _put(folders[seed], folder))
    lines = capsys.readouterr().out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("seed  status"))
    rows = [line.split() for line in lines[start + 1 : start + 6]]
    assert [row[0] for row in rows] == ["7", "6", "5", "3", "4"]
    # What a run converged with is its last return, not the mean with the evaluations before.
    assert [row[2] for row in rows[:2]] == ["100", "100"]
    assert lines[start + 6] == (
        "last return (mean of 5 evaluations; converged: the last one): mean 75, std 37.75, worst 10"
    )
    assert lines[start + 7] == "converged: 2 of 5, in a median of 400 env steps"


def _put(source, folder):
    if source.exists():
        os.rename(source, folder)


@contextlib.contextmanager
def _start(config, *options):
    command = [sys.executable, "-m", "ding", "-c", config, "-s", "0-1", "--jobs", "2", *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, env=env, stdout=pipe, stderr=both, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_an_error_of_a_custom_class_does_not_stop_the_next_seeds(tmp_path, capsys):
    trained = []

    def train(seed, folder):
        trained.append(folder)
        if seed == 0:
            raise RuntimeError("of a policy")

    base = str(tmp_path / "run")
    assert train_in_turn(base, [0, 1], False, train) == 1
    assert trained == [f"{base}_seed0", f"{base}_seed1"]
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "seed 0 failed: of a policy" in err


@pytest.mark.slow
def test_side_by_side(config):
    with _start(config, "--train-iter", "1", "--set", "policy.learn.batch_size=4") as process:
        output, _ = process.communicate(timeout=150)
    assert process.returncode == 0, output
    for seed in (0, 1):
        record = read_record(f"run_seed{seed}")
        assert (record.status, record.seed, record.train_iter) == ("finished", seed, 1)
    assert "last return (mean of 5 evaluations; converged: the last one): mean" in output
    assert read_record("run_seed0").pid != read_record("run_seed1").pid


@pytest.mark.slow
def test_failure_of_one_shows_its_cause(config):
    with _start(config, "--set", "policy.learn.batch_size=0") as process:
        output, _ = process.communicate(timeout=150)
    assert process.returncode == 1
    assert "policy.learn.batch_size" in output
    assert "seed 0: not started" in output


@pytest.fixture
def deaf(tmp_path, monkeypatch):
    """Lets runs be processes that do not end by SIGTERM; gives the file that one makes."""
    script = tmp_path / "deaf"
    script.write_text("#!/bin/sh\ntrap '' TERM\ntouch started\nwhile :; do sleep 0.1; done\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(durations, "COMMAND_END", 0.3)
    return tmp_path / "started"


@pytest.mark.slow
def test_one_that_is_enough_and_does_not_end_is_killed(deaf):
    with Commands(1) as commands:
        status, _ = commands.run([], is_enough=deaf.exists)
    assert status == -signal.SIGKILL


def test_those_that_do_not_end_with_this_process_are_killed(deaf):
    statuses = []

    def run_one():
        statuses.append(commands.run([])[0])
        return True

    with pytest.raises(StopNow) as caught, Commands(2) as commands:
        interrupt = threading.Thread(target=interrupt_when, args=(deaf, commands))
        interrupt.start()
        try:
            commands.work(run_one)
        finally:
            interrupt.join(20)
    assert caught.value.ending.exit_status == 130
    assert set(statuses) <= {-signal.SIGKILL, -signal.SIGTERM}
    assert -signal.SIGKILL in statuses
    assert commands.run([]) == (1, "")  # nothing is started any more


def interrupt_when(started, commands):
    wait_for(lambda: started.exists() and len(commands.running) == 2)
    os.kill(os.getpid(), signal.SIGINT)


def test_an_error_of_one_ends_the_others(deaf):
    def fail():
        wait_for(lambda: len(commands.running) == 1)
        raise RuntimeError("of a thread")

    steps = iter([lambda: commands.run([]) is None, fail])
    with pytest.raises(RuntimeError, match="of a thread"), Commands(2) as commands:
        commands.work(lambda: next(steps)())
    assert not commands.running


def test_a_signal_that_is_swallowed_is_raised_later():
    commands = Commands(1)
    commands.__enter__()
    with contextlib.suppress(KeyboardInterrupt):  # as a destructor does
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(StopNow):
        commands.__exit__(None, None, None)


@pytest.mark.slow
def test_all_end_with_a_signal(config):
    with _start(config) as process:
        records = {}
        while (
            any(record.facts.get("began") is not True for record in records.values()) or not records
        ):
            records = {seed: record_or_empty(f"run_seed{seed}") for seed in (0, 1)}
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 143, output
    assert [read_record(f"run_seed{seed}").status for seed in (0, 1)] == ["interrupted"] * 2
    assert output.count("interrupted") >= 2


class ClosedPipe(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def test_a_reader_that_goes_away_ends_no_run(monkeypatch):
    trained = []
    os.mkdir("run_seed0")
    monkeypatch.setattr(sys, "stdout", ClosedPipe())
    assert train_in_turn("run", [0, 1], False, lambda *args: trained.append(args)) == 0
    print_line("run exists", important=True)
    assert [seed for seed, _ in trained] == [0, 1]
