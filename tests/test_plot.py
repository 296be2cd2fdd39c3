"""Returns over seeds: what is read, worked out and drawn."""

import numpy as np
import pytest
from click.testing import CliRunner

import ding
from ding.entry.cli import main
from ding.plot import bootstrap_interval, interquartile_mean, returns
from ding.utils.errors import ConfigError
from tests.board.run_folders import add_rows, make_run


@pytest.fixture
def runs(tmp_path):
    """Three seeds of one config, one of another, and a folder that is no run."""
    for seed in range(3):
        make_run(tmp_path / "exp" / f"dqn_seed{seed}", seed=seed, returns=[0.0, 10.0 * seed])
    make_run(tmp_path / "exp" / "ppo", returns=[5.0, 50.0], learning_rate=0.1)
    (tmp_path / "exp" / "other").mkdir()
    return tmp_path / "exp"


def test_interquartile_mean_leaves_out_the_outer_quarters():
    assert interquartile_mean(np.array([100.0, 1.0, 2.0, -50.0])) == 1.5
    assert interquartile_mean(np.array([1.0, 2.0, 6.0])) == 3
    assert interquartile_mean(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist() == [2, 3]


def test_interval_holds_the_mean_and_shrinks_with_the_seeds():
    values = np.random.default_rng(1).normal(10, 2, size=(64, 3))
    widths = []
    for count in (4, 16, 64):
        low, high = bootstrap_interval(values[:count])
        assert (low <= interquartile_mean(values[:count])).all()
        assert (interquartile_mean(values[:count]) <= high).all()
        widths.append((high - low).mean())
    assert widths == sorted(widths, reverse=True)
    assert np.array_equal(bootstrap_interval(values[:4]), bootstrap_interval(values[:4]))


def test_runs_are_grouped_by_config(runs):
    dqn, ppo = ding.plot.returns(runs).curves
    assert (dqn.name, len(dqn.folders), dqn.label) == ("dqn", 3, "dqn (3 seeds)")
    assert ppo.label == "ppo (1 seed)"
    assert (dqn.x[0], dqn.x[-1], dqn.mean[0], dqn.mean[-1]) == (0, 100, 0, 10)
    assert dqn.low[-1] < 10 < dqn.high[-1]
    assert np.array_equal(ppo.low, ppo.mean)
    assert dqn.best.tolist() == [0, 10, 20]


def test_folders_may_be_runs_or_hold_them_and_count_once(runs):
    (curve,) = returns([runs / "dqn_seed1", str(runs / "dqn_seed1"), runs / "dqn_seed2"]).curves
    assert len(curve.folders) == 2


@pytest.mark.parametrize(("axis", "end"), [("envstep", 100), ("iter", 25), ("time", 1 / 60)])
def test_axes(runs, axis, end):
    assert returns(runs / "ppo", axis).curves[0].x[-1] == pytest.approx(end)


def test_curve_ends_with_its_shortest_run_unless_that_has_converged(tmp_path):
    make_run(tmp_path / "a_seed0", status="finished", returns=[0.0, 1.0, 2.0])
    make_run(tmp_path / "a_seed1", status="finished", returns=[0.0, 1.0, 2.0, 3.0], seed=1)
    assert returns(tmp_path).curves[0].x[-1] == 200
    make_run(tmp_path / "b_seed0", status="converged", returns=[0.0, 10.0], learning_rate=1)
    make_run(
        *(tmp_path / "b_seed1", [0.0, 1.0, 2.0, 3.0]), status="finished", seed=1, learning_rate=1
    )
    curve = returns(tmp_path).curves[1]
    assert (curve.x[-1], curve.mean[-1]) == (300, 6.5)


def test_resumed_run_counts_its_newest_rows(tmp_path):
    folder = make_run(tmp_path / "run", returns=[0.0, 1.0, 2.0])
    add_rows(folder, [7.0, 8.0], start=1)
    with open(folder / "metrics.jsonl", "a") as file:
        file.write('{"time": 9, "step": 900, "evaluator_step/rew')
    (curve,) = returns(tmp_path).curves
    assert curve.mean[[0, 50, 100]].tolist() == [0, 7, 8]


def test_table_ranks_by_the_end_not_by_the_luckiest(tmp_path):
    make_run(tmp_path / "steady", returns=[20.0] * 9)
    make_run(tmp_path / "lucky", returns=[0.0] * 3 + [99.0] + [0.0] * 5, learning_rate=1)
    make_run(tmp_path / "lucky_seed1", returns=[1.0] * 9, learning_rate=1, seed=1)
    lines = [line.split() for line in returns(tmp_path).table().splitlines()[1:]]
    assert lines == [
        ["steady", "1", "20", "-", "20", "20"],
        ["lucky", "2", "0.5", "0", "to", "1", "0", "99"],
    ]


def test_configs_of_one_name_are_named_by_what_differs(tmp_path):
    make_run(tmp_path / "a" / "run")
    make_run(tmp_path / "b" / "run", learning_rate=1)
    names = {curve.name for curve in returns(tmp_path).curves}
    assert names == {"run, learning_rate 0.001", "run, learning_rate 1"}


def test_each_environment_has_a_panel_with_its_best_configs(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    for i in range(3):
        config = make_run(tmp_path / f"run{i}", returns=[float(i)] * 2, learning_rate=i)
        text = (config / "total_config.py").read_text()
        env = "Pong" if i else "Breakout"
        (config / "total_config.py").write_text(text[:-2] + f"    'env': {{'env_id': '{env}'}}}}")
    plot = returns(tmp_path)
    assert sorted(curve.env for curve in plot.curves) == ["Breakout", "Pong", "Pong"]
    plot.save(tmp_path / "out.html", most=1)
    page = (tmp_path / "out.html").read_text()
    assert "Breakout" in page
    assert "Pong (the best 1 of 2)" in page


def test_no_runs_and_unknown_axis_are_said(tmp_path):
    with pytest.raises(ConfigError, match="no run with an evaluation in"):
        returns(tmp_path)
    with pytest.raises(ConfigError, match="expected envstep, iter or time"):
        returns(tmp_path, "steps")


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_picture(runs, ending, magic):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    returns(runs).save(runs / f"out.{ending}")
    assert (runs / f"out.{ending}").read_bytes().startswith(magic)


def test_html_needs_no_network(runs):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    returns(runs).save(runs / "out.html")
    text = (runs / "out.html").read_text()
    assert "dqn (3 seeds)" in text
    assert "<script src=" not in text


def test_other_endings_are_refused(runs):
    with pytest.raises(ConfigError, match=r"expected a name with \.png, \.pdf, \.svg or \.html"):
        returns(runs).save(runs / "out.jpeg")


def test_command_prints_the_table_and_draws(runs):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    done = CliRunner().invoke(main, ["plot", str(runs), "-o", str(runs / "out.png"), "-x", "time"])
    assert done.exit_code == 0
    assert done.output.splitlines()[1].split()[0] == "ppo"
    assert (runs / "out.png").exists()


def test_files_that_a_pattern_matches_are_left_out(runs, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    picture = tmp_path / "old.png"
    picture.write_bytes(b"")
    out = str(tmp_path / "out.png")
    done = CliRunner().invoke(main, ["plot", *map(str, [picture, *runs.iterdir()]), "-o", out])
    assert done.exit_code == 0, done.output


def test_command_fails_where_there_is_nothing(tmp_path):
    done = CliRunner().invoke(main, ["plot", str(tmp_path)])
    assert done.exit_code == 1
    assert "no run with an evaluation" in done.output
