"""Comparison of algorithms over environments: scores, tables, pictures."""

import numpy as np
import pytest
from click.testing import CliRunner

from ding.compare import compare
from ding.entry.cli import main
from ding.plot import returns
from ding.utils.errors import ConfigError
from tests.board.run_folders import make_run


def add_runs(root, env, name, lasts, **env_config):
    """A run for each last return, whose first evaluation is 10."""
    for seed, last in enumerate(lasts):
        folder = make_run(
            *(root / f"{env}_{name}_seed{seed}", [10.0, last]), seed=seed, status="converged"
        )
        config = {"policy": {"name": name}, "env": {"env_id": env, **env_config}}
        (folder / "total_config.py").write_text(f"exp_config = {config!r}\n")


@pytest.fixture
def runs(tmp_path):
    """Two algorithms in two environments, the goal of one of which is known, and one in one."""
    root = tmp_path / "exp"
    for env, goal in (("Pong", {"stop_value": 110.0}), ("Maze", {})):
        add_runs(root, env, "good", [110.0, 60.0], **goal)
        add_runs(root, env, "poor", [10.0, 60.0], **goal)
    add_runs(root, "Maze", "other", [210.0])
    return root


def test_scores_are_0_untrained_and_1_at_the_goal_or_the_best_return(runs):
    compared = compare(returns(runs))
    assert compared.envs == ("Maze", "Pong")
    assert compared.scales == {"Pong": (10, 110), "Maze": (10, 210)}
    assert list(compared.scores) == ["good", "poor"]
    assert [task.tolist() for task in compared.scores["good"]] == [[0.5, 0.25], [1, 0.5]]
    assert compared.left_out == ("other",)


def test_table_has_scales_aggregates_and_chances(runs):
    text = compare(returns(runs), {"Maze": (10, 110)}).table()
    lines = [line.split() for line in text.splitlines()]
    assert lines[1:3] == [["Maze", "10", "110"], ["Pong", "10", "110"]]
    # Of 1 .5 1 .5 the middle two, and of 0 .5 0 .5: bounds are their least and largest values.
    assert lines[5] == [
        "good",
        "4",
        *["0.75", "(0.50", "to", "1.00)"] * 3,
        *["0.25", "(0.00", "to", "0.50)"],
    ]
    assert lines[6][:3] == ["poor", "4", "0.25"]
    # Of four pairs three are wins and one is a tie.
    assert lines[9:11] == [["good", "0.50", "0.88"], ["poor", "0.12", "0.50"]]
    assert text.endswith("left out, without runs in each env: other")


def test_the_best_are_compared_if_there_are_more(runs):
    assert list(compare(returns(runs), most=1).scores) == ["good"]


def test_wrong_scales_and_unmatched_names_are_refused(runs, tmp_path):
    with pytest.raises(ConfigError, match="--scale Pogn: there are runs in Maze, Pong"):
        compare(returns(runs), {"Pogn": (0, 1)})
    add_runs(tmp_path / "flat", "Flat", "one", [10.0])
    with pytest.raises(ConfigError, match="set both with --scale Flat=LOW:HIGH"):
        compare(returns(tmp_path / "flat"))
    with pytest.raises(ConfigError, match="no algorithm has runs in each of Flat, Maze"):
        compare(returns([tmp_path / "flat", *runs.glob("Maze*")]), {"Flat": (0, 1)})


@pytest.mark.parametrize(("scale", "complaint"), [("Maze=0:a", "expected ENV=LOW:HIGH"),
                                                  ("Maze=5:1", "expected ENV=LOW:HIGH"),
                                                  ("0:1", "expected ENV=LOW:HIGH")])  # fmt: skip
def test_wrong_scale_options_are_refused(runs, scale, complaint):
    done = CliRunner().invoke(main, ["plot", str(runs), "--compare", "--scale", scale])
    assert done.exit_code == 2
    assert complaint in done.output
    assert "--scale is for --compare" in (
        CliRunner().invoke(main, ["plot", str(runs), "--scale", "Maze=0:1"]).output
    )


@pytest.mark.parametrize("groups", [1, 12])
def test_command_compares_and_draws(runs, groups):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    args = ["plot", str(runs), "--compare", "--scale", "Maze=0:1e2", "--groups", str(groups)]
    done = CliRunner().invoke(main, [*args, "-o", str(runs / "out.html")])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[1].split() == ["Maze", "0", "100"]
    page = (runs / "out.html").read_text()
    assert "performance profile" in page
    assert ("probability of improvement" in page) == (groups > 1)
    assert np.char.count(page, "optimality gap") > 1
