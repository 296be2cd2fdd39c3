"""``ding sweep``: trials, going on, early ends, and the report."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from ding.entry.cli import main
from ding.entry.seed_runs import Commands
from ding.entry.sweep import read_space, sweep
from ding.utils.errors import ConfigError, RunError
from tests.board.run_folders import make_run

SPACE = """
policy.learn.learning_rate: {low: 1e-5, high: 1e-2, log: true}
policy.nstep: {low: 1, high: 5}
policy.learn.batch_size: [32, 64]
"""


@pytest.fixture
def space(tmp_path):
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    return str(path)


class FakeCommands(Commands):
    """Runs that return as much as their ``nstep``."""

    commands: list
    is_watched = False

    def run(self, args, is_enough):
        self.commands.append(args)
        settings = dict(word.split("=", 1) for word in args if "=" in word)
        folder = args[args.index("--exp-name") + 1]
        make_run(Path(folder), returns=[float(settings["policy.nstep"])] * 3)
        return (143 if self.is_watched and is_enough() else 0), ""


@pytest.fixture
def fake(monkeypatch):
    pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")
    FakeCommands.commands = []
    monkeypatch.setattr("ding.entry.sweep.Commands", FakeCommands)
    return FakeCommands


@pytest.mark.slow
def test_trials_are_runs_with_settings_of_the_space(fake, space):
    report = sweep(read_space(space), ["-c", "config.py"], "sweep", 12)
    assert len(fake.commands) == 12
    for command in fake.commands:
        settings = dict(word.split("=", 1) for word in command if "=" in word)
        assert 1e-5 <= float(settings["policy.learn.learning_rate"]) <= 1e-2
        assert settings["policy.learn.batch_size"] in ("32", "64")
        assert 1 <= int(settings["policy.nstep"]) <= 5
    lines = report.splitlines()
    assert lines[0].split()[:3] == ["trial", "last", "return"]
    values = [float(line.split()[1]) for line in lines[1:] if line[:1].isdigit()]
    assert values == sorted(values, reverse=True)
    matters = report[report.index("how much") :].splitlines()
    assert matters[1].split()[1] == "policy.nstep"


@pytest.mark.slow
def test_sweep_goes_on_where_it_was(fake, space):
    sweep(read_space(space), [], "sweep", 3)
    sweep(read_space(space), [], "sweep", 5)
    assert len(fake.commands) == 5


def test_trials_worse_than_the_median_end_early(fake, space, monkeypatch, capsys):
    monkeypatch.setattr(fake, "is_watched", True)
    report = sweep(read_space(space), [], "sweep", 15)
    ended = capsys.readouterr().out.count("ended early")
    assert ended > 0
    ranked = [line for line in report.splitlines() if line[:1].isdigit()]
    assert len(ranked) == min(10, 15 - ended)


def test_sweep_stops_where_no_trial_works(fake, space, monkeypatch):
    monkeypatch.setattr(fake, "run", lambda *_: (1, "the cause"))
    with pytest.raises(RunError, match="no trial worked; the last one said: the cause"):
        sweep(read_space(space), [], "sweep", 50)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "a: 3",
        "a: []",
        "a: {low: 1}",
        "a: {low: 2, high: 1}",
        "a: {low: x, high: 1}",
        "{",
    ],
)
def test_wrong_space_is_said(tmp_path, text):
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"space\.yaml"):
        read_space(str(path))


@pytest.mark.slow
def test_command_trains(space, tmp_path):
    pytest.importorskip("optuna", reason="the extra 'sweep' is not installed")
    from tests.entry.test_seed_runs import CONFIG

    (tmp_path / "config.py").write_text(CONFIG.format(stop=10_000))
    args = ["sweep", "-c", "config.py", "--space", space, "--trials", "1", "--train-iter", "1"]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "exp/sweep/trial0/run.json").exists()
