"""``ding sweep``: the space, trials, seeds, processes, going on, early ends, and the report."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ding.entry.cli import main
from ding.entry.cli_runs import check_settings
from ding.entry.seed_runs import Commands
from ding.utils.errors import ConfigError, RunError
from tests.board.run_folders import add_rows, make_run
from tests.docs.fences import ROOT

pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")
from ding.entry.sweep import Plan, _Watch, examples, read_space, settings_of, sweep

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
        return (143 if self.is_watched and is_enough and is_enough() else 0), ""


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
    assert {line.split()[1] for line in matters[1:4]} == set(space)
    assert "ding -c config.py --set policy.learn.learning_rate=" in lines[-1]


def test_sweep_goes_on_where_it_was_with_other_settings(fake, space):
    sweep(space, PLAN, "sweep", 3)
    sweep(space, PLAN, "sweep", 5)
    assert len(fake.commands) == 5
    # A sampler with a seed would repeat its first trials.
    assert len({str(settings_in(command)) for command in fake.commands}) == 5


def test_sweep_is_the_same_under_another_name_of_its_folder(fake, space, tmp_path):
    sweep(space, PLAN, "sweep", 2)
    sweep(space, PLAN, str(tmp_path / "sweep"), 3)
    os.rename("sweep", "moved")
    sweep(space, PLAN, "moved", 4)
    numbers = [Path(one[one.index("--exp-name") + 1]).name for one in fake.commands]
    assert numbers == ["trial0", "trial1", "trial2", "trial3"]


def test_trials_of_a_lost_journal_are_not_taken_for_new_ones(fake, space):
    sweep(space, PLAN, "sweep", 1)
    os.remove("sweep/sweep.journal")
    with pytest.raises(ConfigError, match=r"holds trials that .* does not know"):
        sweep(space, PLAN, "sweep", 1)


def test_a_folder_that_cannot_be_made(fake, space):
    Path("file").touch()
    with pytest.raises(ConfigError, match="cannot be opened"):
        sweep(space, PLAN, "file/sweep", 1)


def test_a_trial_has_a_run_for_each_seed(fake, space, capsys):
    plan = Plan([], seeds=[1, 2, 3])
    report = sweep(space, plan, "sweep", 1)
    folders = [f"sweep/trial0_seed{seed}" for seed in (1, 2, 3)]
    assert [command[3] for command in fake.commands] == folders
    assert len({str(settings_in(command)) for command in fake.commands}) == 1
    nstep = float(settings_in(fake.commands[0])["policy.nstep"])
    mean = f"{nstep + 10 / 3:.4g}"
    assert report.splitlines()[1].split()[:3] == ["0", mean, f"{nstep:.4g}"]
    assert f"trial 0: {mean}  learning_rate=" in capsys.readouterr().out


@pytest.mark.parametrize("plan", [Plan([]), Plan([], env_step=200), Plan([], seeds=[0, 1])])
def test_worse_trials_end_early(fake, space, monkeypatch, capsys, plan):
    monkeypatch.setattr(fake, "is_watched", True)
    report = sweep(space, plan, "sweep", 15, sampler="random")
    ended = capsys.readouterr().out.count("ended early")
    assert ended > 0
    assert f"{15 - ended} trials, {ended} ended early" in report


@pytest.mark.parametrize("first", [100, 300])
def test_without_a_limit_each_of_very_many_evaluations_is_compared(first, tmp_path):
    reported = {}
    trial = SimpleNamespace(
        report=lambda value, rung: reported.update({rung: value}), should_prune=lambda: False
    )
    returns = [float(i) for i in range(300)]
    watch = _Watch(trial, str(tmp_path / "run"), None)
    make_run(tmp_path / "run", returns=returns[:first], status="running")
    watch.is_hopeless()
    add_rows(tmp_path / "run", returns[first:], start=first)
    watch.is_hopeless()
    assert reported == dict(enumerate(returns))


def test_no_trial_ends_early_without_a_pruner(fake, space, monkeypatch, capsys):
    monkeypatch.setattr(fake, "is_watched", True)
    sweep(space, PLAN, "sweep", 15, pruner="none", sampler="random")
    assert "ended early" not in capsys.readouterr().out


def test_a_grid_tries_each_combination_once(fake, written):
    space = written("policy.nstep: [1, 3]\npolicy.priority: [false, true]\n")
    sweep(space, PLAN, "sweep", 2, sampler="grid")
    report = sweep(space, PLAN, "sweep", 50, sampler="grid")
    assert len({str(settings_in(command)) for command in fake.commands}) == 4
    assert len(fake.commands) == 4
    assert "4 trials" in report
    with pytest.raises(ConfigError, match=r"policy\.nstep: a grid needs a list"):
        sweep(written("policy.nstep: {low: 1, high: 2}"), PLAN, "other", 2, sampler="grid")


def test_sweep_stops_where_no_trial_works(fake, space, monkeypatch):
    monkeypatch.setattr(fake, "run", lambda *_: (1, "the cause"))
    with pytest.raises(RunError, match="no trial worked; the last one said: the cause"):
        sweep(space, PLAN, "sweep", 50)


def test_other_runs_do_not_join_a_sweep(fake, space, written):
    sweep(space, PLAN, "sweep", 1)
    with pytest.raises(ConfigError, match=r"seeds \[0\], now \[1\]: .* another --folder"):
        sweep(space, Plan(PLAN.args, seeds=[1]), "sweep", 2)
    with pytest.raises(ConfigError, match="earlier trials in sweep had other choices"):
        sweep(written("policy.nstep: [1, 2]"), PLAN, "sweep", 2)
    sweep(written("policy.nstep: {low: 2, high: 3}"), PLAN, "sweep", 2)


def test_an_unreadable_study_is_named(fake, space):
    os.makedirs("sweep/sweep.journal")
    with pytest.raises(ConfigError, match=r"the study in sweep/.* cannot be opened"):
        sweep(space, PLAN, "sweep", 1)


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
    assert "4 trials" in output, output
    options[options.index("--trials") + 1] = "5"
    output = _start(*options).communicate(timeout=250)[0]
    assert "5 trials" in output, output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ([], "Missing option '--space'"),
        (["--space", "space.yaml"], "expected -c FILE, or -e ID with -p TYPE"),
        (["--space", "space.yaml", "-e", "CartPole-v1"], "-e and -p go together"),
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
        ("policy.other.eps.dekay: {low: 1, high: 9}", "did you mean policy.other.eps.decay?"),
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
    assert len(space) == 5
    for values in examples(space):
        check_settings(None, "CartPole-v1", "dqn", settings_of(values)[1::2])


def test_sections_may_be_nested_as_in_the_config(written):
    nested = written("policy: {learn: {batch_size: [1, 2]}, nstep: {low: 1, high: 5}}")
    flat = written("policy.learn.batch_size: [1, 2]\npolicy.nstep: {low: 1, high: 5}")
    assert nested == flat
    assert list(nested) == ["policy.learn.batch_size", "policy.nstep"]


def test_examples_hold_each_choice_and_end(written):
    found = list(examples(written("a: [[1, 2], {b: 1}, null]\nc: {low: 0.1, high: 1}\n")))
    assert [one["a"] for one in found] == [[1, 2], {"b": 1}, None]
    assert {one["c"] for one in found} == {0.1, 1}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "must map paths such as policy.nstep"),
        ("[1]", "must map paths"),
        ("{", "cannot be read"),
        ("a: 3", "a: got 3, expected a list of values such as"),
        ("a: []", "a: .*one or more"),
        ("a: {}", "a: got {}, expected a list"),
        ("a: {low: 1}", "expected a list of values"),
        ("a: {low: 2, high: 1}", "a: `low <= high` must hold"),
        ("a: {low: x, high: 1}", "a: could not convert"),
        ("a: {low: 1, high: 3, hihg: 2}", "a: unknown word 'hihg'; did you mean high?"),
        ("a: {low: 0, high: 0.1, log: true}", "a: `low > 0` must hold"),
        ("a: {low: 1, high: 9, step: -1}", "`step > 0` must hold"),
        ("a: {choices: [1], low: 2}", "a list of choices and nothing else"),
        ("a.b: [1]\na: {b: [2]}", "a.b is given twice"),
        ("seed: [1, 2]", "seed cannot be swept; it is set by -s"),
        ("exp_name: [a]", "exp_name cannot be swept; it is set by --folder"),
    ],
)
def test_what_is_wrong_in_a_space_is_named(written, text, complaint):
    with pytest.raises(ConfigError, match=r"space\.yaml.*" + complaint):
        written(text)
