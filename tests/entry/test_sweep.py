"""``ding sweep``: trials, seeds, processes, going on, early ends, and the report."""

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from ding.entry.cli import main
from ding.entry.cli_runs import check_settings
from ding.entry.seed_runs import Commands
from ding.entry.sweep import Plan, metric_of, settings_of, sweep
from ding.entry.sweep_space import read_space
from ding.utils.errors import ConfigError, RunError
from tests.board.run_folders import make_run
from tests.docs.fences import ROOT

optuna = pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")

SPACE = """
policy.learn.learning_rate: {low: 1e-5, high: 1e-2, log: true}
policy.nstep: {low: 1, high: 5}
policy.learn.batch_size: [32, 64]
"""
PLAN = Plan(["-c", "config.py"])


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return read_space(str(path))


@pytest.fixture
def written(tmp_path):
    """Gives the space of a YAML text."""

    def write(text):
        path = tmp_path / "space.yaml"
        path.write_text(text)
        return read_space(str(path))

    return write


def settings_in(command):
    return dict(word.split("=", 1) for word in command if "=" in word)


class FakeCommands(Commands):
    """Runs that return as much as their ``nstep``, and seed 2 ten more."""

    commands: list
    is_watched = False

    def run(self, args, is_enough):
        self.commands.append(args)
        folder = Path(args[args.index("--exp-name") + 1])
        value = float(settings_in(args).get("policy.nstep", 1))
        value += 10 * (args[args.index("--seed") + 1] == "2")
        make_run(folder, returns=[value] * 3, status="finished")
        return (143 if self.is_watched and is_enough() else 0), ""


@pytest.fixture
def fake(monkeypatch):
    FakeCommands.commands = []
    monkeypatch.setattr("ding.entry.sweep.Commands", FakeCommands)
    return FakeCommands


@pytest.mark.slow
def test_trials_are_runs_with_settings_of_the_space(fake, space):
    report = sweep(space, PLAN, "sweep", 12)
    assert len(fake.commands) == 12
    for command in fake.commands:
        settings = settings_in(command)
        assert 1e-5 <= float(settings["policy.learn.learning_rate"]) <= 1e-2
        assert settings["policy.learn.batch_size"] in ("32", "64")
        assert 1 <= int(settings["policy.nstep"]) <= 5
    lines = report.splitlines()
    assert lines[0].split()[3:6] == ["learning_rate", "nstep", "batch_size"]
    values = [float(line.split()[1]) for line in lines[1:11]]
    assert values == sorted(values, reverse=True)
    matters = report[report.index("how much") :].splitlines()
    assert matters[1].split()[1] == "policy.nstep"
    assert "ding -c config.py --set policy.learn.learning_rate=" in lines[-1]


def test_sweep_goes_on_where_it_was_with_other_settings(fake, space):
    sweep(space, PLAN, "sweep", 3)
    sweep(None, None, "sweep", 5)
    assert len(fake.commands) == 5
    # A sampler with the seed of the first process would repeat its first trials.
    assert len({str(settings_in(command)) for command in fake.commands}) == 5


def test_a_trial_has_a_run_for_each_seed(fake, space, capsys):
    plan = Plan([], seeds=[1, 2, 3], over_seeds="worst", metric="best")
    report = sweep(space, plan, "sweep", 1)
    folders = [f"sweep/trial0_seed{seed}" for seed in (1, 2, 3)]
    assert [command[3] for command in fake.commands] == folders
    assert len({str(settings_in(command)) for command in fake.commands}) == 1
    nstep = settings_in(fake.commands[0])["policy.nstep"]
    assert report.splitlines()[1].split()[:3] == ["0", nstep, nstep]
    assert "best return (worst)" in report
    assert f"trial 0: {nstep}  learning_rate=" in capsys.readouterr().out


@pytest.mark.parametrize(("over", "value"), [("mean", 13 / 3), ("iqm", 13 / 3), ("median", 1)])
def test_seeds_are_aggregated(fake, written, over, value):
    plan = Plan([], seeds=[1, 2, 3], over_seeds=over)
    report = sweep(written("policy.nstep: [1]"), plan, "sweep", 1)
    assert float(report.splitlines()[1].split()[1]) == pytest.approx(value, rel=1e-3)


def test_metrics_of_a_run(tmp_path):
    rows = [0.0, 10.0, 40.0]
    finished = str(make_run(tmp_path / "a", returns=rows, status="finished"))
    converged = str(make_run(tmp_path / "b", returns=rows, status="converged"))
    values = {
        metric: [metric_of(run, metric, 400) for run in (finished, converged)]
        for metric in ("last", "best", "area")
    }
    assert values["last"] == [pytest.approx(50 / 3), 40]
    assert values["best"] == [40, 40]
    # The second one keeps 40 from step 200 to step 400.
    assert values["area"] == [pytest.approx(15, rel=0.01), pytest.approx(27.5, rel=0.01)]


@pytest.mark.parametrize("plan", [Plan([]), Plan([], env_step=200), Plan([], seeds=[0, 1])])
@pytest.mark.parametrize("pruner", ["median", "halving", "hyperband"])
def test_worse_trials_end_early(fake, space, monkeypatch, capsys, plan, pruner):
    monkeypatch.setattr(fake, "is_watched", True)
    report = sweep(space, plan, "sweep", 15, pruner=pruner)
    ended = capsys.readouterr().out.count("ended early")
    assert ended > 0 or pruner != "median"
    assert f"{15 - ended} trials" in report


def test_no_trial_ends_early_without_a_pruner(fake, space, monkeypatch, capsys):
    monkeypatch.setattr(fake, "is_watched", True)
    sweep(space, PLAN, "sweep", 15, pruner="none", sampler="random")
    assert "ended early" not in capsys.readouterr().out


def test_a_grid_tries_each_combination_once(fake, written):
    space = written(
        "policy.nstep: {low: 1, high: 3, step: 2}\n"
        "policy.priority: [false, true]\n"
        "policy.alpha: {choices: [0.5, 0.6], when: {policy.priority: true}}\n"
    )
    sweep(space, PLAN, "sweep", 2, sampler="grid")
    report = sweep(None, None, "sweep", 50)
    tried = [settings_in(command) for command in fake.commands]
    assert len(tried) == len({str(one) for one in tried}) == 6
    assert sum("policy.alpha" in one for one in tried) == 4
    assert "6 trials" in report


def test_a_sampler_names_the_package_that_it_needs(fake, space, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ConfigError, match="--sampler gp needs scipy: pip install scipy"):
        sweep(space, PLAN, "sweep", 1, sampler="gp")


def test_sweep_stops_where_no_trial_works(fake, space, monkeypatch):
    monkeypatch.setattr(fake, "run", lambda *_: (1, "the cause"))
    with pytest.raises(RunError, match="no trial worked; the last one said: the cause"):
        sweep(space, PLAN, "sweep", 50)


def test_other_runs_do_not_join_a_sweep(fake, space, written):
    sweep(space, PLAN, "sweep", 1)
    with pytest.raises(ConfigError, match=r"metric 'last', now 'best'.*--resume alone"):
        sweep(space, Plan(PLAN.args, metric="best"), "sweep", 2)
    with pytest.raises(ConfigError, match=r"policy\.nstep: earlier trials .* other choices"):
        sweep(written("policy.nstep: [1, 2]"), PLAN, "sweep", 2)
    sweep(written("policy.nstep: {low: 2, high: 3}"), PLAN, "sweep", 2)
    with pytest.raises(ConfigError, match="there is no sweep in 'other'"):
        sweep(None, None, "other", 2)


@pytest.mark.parametrize("storage", ["sqlite:///study.db", "shared.journal"])
def test_folders_may_share_a_storage(fake, space, storage):
    for folder in ("one", "two", "one"):
        sweep(space, PLAN, folder, 2, storage=storage)
    assert len(fake.commands) == 4


def test_a_wrong_storage_is_refused(fake, space):
    with pytest.raises(ConfigError, match="the study in foo://x cannot be opened"):
        sweep(space, PLAN, "sweep", 1, storage="foo://x")
    with pytest.raises(ConfigError, match=r"sqlite:///.* has no sweep of the folder 'sweep'"):
        sweep(None, None, "sweep", 1, storage="sqlite:///study.db")


def test_a_dead_process_leaves_a_trial_that_is_tried_again(fake, space, monkeypatch, capsys):
    """Its process has gone, or is on another host and gave no sign of life for long."""
    dead = subprocess.Popen(["true"])
    dead.wait()
    long_ago = time.time() - 1000
    for pid, host, now in (
        (dead.pid, platform.node(), time.time()),
        (os.getppid(), "elsewhere", long_ago),
        (os.getppid(), "elsewhere", time.time()),
    ):
        with monkeypatch.context() as other:
            other.setattr("os.getpid", lambda pid=pid: pid)
            other.setattr("platform.node", lambda host=host: host)
            other.setattr("time.time", lambda now=now: now)
            other.setattr(fake, "run", lambda *_: (_ for _ in ()).throw(SystemExit))
            # It could not store that it ended, nor look for others that have.
            other.setattr("ding.entry.sweep._is_dead", lambda _: False)
            other.setattr("optuna.Study.tell", lambda *_, **__: None)
            with pytest.raises(SystemExit):
                sweep(space, PLAN, "sweep", 50)
    settings = [trial.params for trial in stored_trials("sweep")]
    report = sweep(space, PLAN, "sweep", 3)
    # The third one may be alive: it counts as a trial, and is not waited for.
    assert len(fake.commands) == 2
    assert capsys.readouterr().out.count("its process has ended; it is tried again") == 2
    assert "2 trials, 2 failed, 1 running in other processes" in report
    assert [trial.params for trial in stored_trials("sweep")[3:]] == settings[:2]


def stored_trials(folder):
    backend = optuna.storages.journal.JournalFileBackend(f"{folder}/sweep.journal")
    storage = optuna.storages.JournalStorage(backend)
    return optuna.load_study(study_name=folder, storage=storage).get_trials()


CONFIG = """
from tests.entry.test_seed_runs import CONFIG
exec(CONFIG.format(stop=10_000))
"""


def _start(*options):
    command = [sys.executable, "-m", "ding", "sweep", *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, stdout=pipe, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_processes_share_a_sweep_and_one_may_be_killed(space, tmp_path):
    (tmp_path / "config.py").write_text(CONFIG)
    options = ["-c", "config.py", "--space", "space.yaml", "--trials", "4", "--train-iter", "1"]
    with _start(*options) as one, _start(*options) as other:
        while not Path("exp/sweep/trial0").exists():
            assert one.poll() is None
            time.sleep(0.05)
        one.send_signal(signal.SIGKILL)
        output, _ = other.communicate(timeout=250)
    assert other.returncode == 0, output
    output = _start("--resume", "--trials", "5").communicate(timeout=250)[0]
    assert "5 trials" in output, output
    folders = sorted(os.listdir("exp/sweep"))
    assert len([name for name in folders if name.startswith("trial")]) in (5, 6)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "--space FILE is missing"),
        (["--space", "space.yaml"], "expected -c FILE, or -e ID with -p TYPE"),
        (["--space", "space.yaml", "-e", "CartPole-v1"], "-e and -p go together"),
        (["--resume", "--metric", "best"], "--resume takes these from the sweep: metric"),
    ],
)
def test_wrong_usage_is_refused(space, options, complaint):
    done = CliRunner().invoke(main, ["sweep", *options])
    assert done.exit_code == 2
    assert complaint in done.output


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("policy.learn.learning_rat: [1]", "did you mean policy.learn.learning_rate?"),
        ("policy: {nstep: [1, two]}", "policy.nstep must be an integer, got str 'two'"),
        ("create_config.policy.type: [dqn, dqm]", "no policy type 'dqm' is registered"),
        (
            "policy.priority: [false, true]\n"
            "policy.other.eps.dekay: {low: 1, high: 9, when: {policy.priority: true}}",
            "did you mean policy.other.eps.decay?",
        ),
    ],
)
def test_a_wrong_key_or_value_is_found_before_the_first_trial(tmp_path, fake, text, complaint):
    (tmp_path / "space.yaml").write_text(text)
    args = ["sweep", "-e", "CartPole-v1", "-p", "dqn", "--space", "space.yaml"]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 1
    assert "error: space.yaml: " in done.output
    assert complaint in done.output
    assert not fake.commands
    assert not os.path.exists("exp")


@pytest.mark.slow
def test_command_trains(space, tmp_path):
    (tmp_path / "config.py").write_text(CONFIG)
    args = ["-c", "config.py", "--space", "space.yaml", "--trials", "1", "--train-iter", "1"]
    settings = ["-s", "0-1", "--set", "policy.discount_factor=0.9"]
    done = CliRunner().invoke(main, ["sweep", *args, *settings])
    assert done.exit_code == 0, done.output
    for seed in (0, 1):
        record = json.loads((tmp_path / f"exp/sweep/trial0_seed{seed}/run.json").read_text())
        assert record["seed"] == seed


def test_the_space_of_the_docs_fits_a_config(tmp_path):
    text = (ROOT / "docs" / "sweeps.md").read_text()
    (tmp_path / "space.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    space = read_space(str(tmp_path / "space.yaml"))
    assert len(space) == 8
    for values in space.examples():
        check_settings(None, "CartPole-v1", "dqn", settings_of(values)[1::2])
