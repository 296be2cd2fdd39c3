"""Returns over seeds: what is read, worked out and drawn."""

import numpy as np
import pytest
from click.testing import CliRunner

import ding
from ding.entry.cli import main
from ding.plot import returns
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


@pytest.mark.parametrize("axis", ["envstep", "iter", "time"])
def test_resumed_run_does_not_end_with_what_was_lost(tmp_path, axis):
    folder = make_run(tmp_path / "run", returns=[0.0, 1.0, 99.0, 99.0], status="finished")
    add_rows(folder, [7.0], start=1)
    (curve,) = returns(tmp_path, axis).curves
    assert (curve.best.tolist(), curve.last.tolist()) == ([7.0], [3.5])


def test_table_ranks_by_the_end_not_by_the_luckiest(tmp_path):
    make_run(tmp_path / "steady", returns=[20.0] * 9)
    make_run(tmp_path / "lucky", returns=[0.0] * 3 + [99.0] + [0.0] * 5, learning_rate=1)
    make_run(tmp_path / "lucky_seed1", returns=[1.0] * 9, learning_rate=1, seed=1)
    lines = [line.split() for line in returns(tmp_path).table().splitlines()[1:]]
    assert lines == [
        ["steady", "1", "20", "-", "20", "20"],
        ["lucky", "2", "0.5", "0", "to", "1", "0", "99"],
    ]


def test_last_return_of_a_converged_run_is_what_it_converged_with(tmp_path):
    make_run(tmp_path / "a", returns=[0.0, 0.0, 50.0])
    make_run(tmp_path / "b", returns=[0.0, 0.0, 60.0], status="finished", learning_rate=1)
    one, other = returns(tmp_path).curves
    assert (one.last, other.last) == ([50], [20])


def _write_config(folder, **config):
    (folder / "total_config.py").write_text(f"exp_config = {config!r}\n")


@pytest.mark.parametrize("prefix", ["", "trial"])
def test_configs_of_one_name_are_named_by_what_differs(tmp_path, prefix):
    """Names that differ in a number alone, as those of a sweep's trials, count as one."""
    for i in range(2):
        name = f"{prefix}{i}" if prefix else "run"
        make_run(tmp_path / str(i) / name, learning_rate=i * 0.1000000001)
    names = {curve.name for curve in returns(tmp_path).curves}
    numbered = [f"{prefix}{i}" if prefix else "run" for i in range(2)]
    assert names == {f"{numbered[0]}, learning_rate 0", f"{numbered[1]}, learning_rate 0.1"}


def test_names_hold_the_keys_that_distinguish_most(tmp_path):
    for i in range(4):
        folder = make_run(tmp_path / str(i) / "run")
        policy = dict(type="dqn", a=i // 2, b=i % 2, c=i == 3, d=i == 2, learn=dict(x=i // 2))
        _write_config(folder, policy=policy, env=dict(env_id="Pong"))
    names = [curve.name for curve in returns(tmp_path).curves]
    assert sorted(names) == [f"run, a {i // 2}, b {i % 2}" for i in range(4)]


def test_equal_last_parts_of_keys_are_told_apart(tmp_path):
    for i in range(2):
        _write_config(
            make_run(tmp_path / str(i) / "run"),
            policy=dict(actor=dict(lr=i), critic=dict(lr=2 * i, very_long="x" * i)),
        )
    first, second = [curve.name for curve in returns(tmp_path).curves]
    assert first == "run, actor.lr 0, critic.lr 0, very_long "
    assert second == "run, actor.lr 1, critic.lr 2, very_long x"


def test_runs_of_several_environments_are_named_without_them(tmp_path):
    for env, name in (
        ("CartPole-v1", "CartPole-v1_dqn"),
        ("Acrobot-v1", "acrobot_dqn"),
        ("ALE/Pong-v5", "ALE_Pong-v5_dqn"),
        ("PongNoFrameskip-v4", "my_pong_dqn"),
        ("Walker2d-v5", "Walker2d-v5"),
    ):
        _write_config(make_run(tmp_path / name), env=dict(env_id=env, stop_value=9.0))
    plot = returns(tmp_path)
    names = {curve.env: curve.name for curve in plot.curves}
    assert list(names.values()).count("dqn") == 3
    assert (names["PongNoFrameskip-v4"], names["Walker2d-v5"]) == ("my_dqn", "Walker2d-v5")
    assert plot.envs == tuple(sorted(names))
    assert {curve.goal for curve in plot.curves} == {9}
    assert plot.table().splitlines()[0].split()[0] == "env"


def test_panels_share_a_legend_and_colours(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    for env in ("Pong", "Breakout"):
        for name in ("dqn", "ppo"):
            _write_config(make_run(tmp_path / f"{env}_{name}"), env=dict(env_id=env), type=name)
    plot = returns(tmp_path)
    plot.save(tmp_path / "shared.svg")
    plot.save(tmp_path / "single.svg", most=1)
    shared, single = ((tmp_path / f"{one}.svg").read_text() for one in ("shared", "single"))
    assert [shared.count(f"<!-- {name} -->") for name in ("dqn", "ppo")] == [1, 1]
    assert "(the best 1 of 2)" in single


def test_each_environment_has_a_panel_with_its_best_configs(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    for i in range(3):
        config = make_run(tmp_path / f"run{i}", returns=[float(i)] * 2, learning_rate=i)
        text = (config / "total_config.py").read_text()
        env = "Pong" if i else "Breakout"
        (config / "total_config.py").write_text(text[:-2] + f"    'env': {{'env_id': '{env}'}}}}")
    plot = returns(tmp_path)
    assert sorted(curve.env for curve in plot.curves) == ["Breakout", "Pong", "Pong"]
    plot.save(tmp_path / "out.svg", most=1)
    page = (tmp_path / "out.svg").read_text()
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


def test_other_endings_are_refused(runs):
    with pytest.raises(ConfigError, match=r"expected a name with \.png, \.pdf or \.svg"):
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
