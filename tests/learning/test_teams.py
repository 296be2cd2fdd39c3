"""Teams learn what independent learners, and what sums of their values, do not."""

from pathlib import Path

import pytest

from ding.config import read_config
from ding.entry import serial_pipeline
from ding.envs.games import MatrixGameEnv

CONFIGS = Path(__file__).parents[2] / "configs"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def play(policy, learned, folder, game="two_step", config="qmix", updates=400, **model):
    """The return of a policy's best actions after its last update."""
    path = CONFIGS / "matrix_game" / f"matrix_game_{config}_config.py"
    main_config, create_config = read_config(str(path))
    main_config.exp_name = str(folder / "run")
    main_config.env.update(stop_value=float("inf"), game=game)
    main_config.policy.model.update(model)
    main_config.policy.eval.evaluator.eval_freq = 10**6
    create_config.policy.type = policy
    trained = serial_pipeline(
        (main_config, create_config), seed=learned.seed, max_train_iter=updates
    )
    return greedy_return(trained, game)


def greedy_return(policy, game):
    env = MatrixGameEnv({"game": game})
    mode, obs, done = policy.eval_mode, env.reset(), False
    mode.reset()
    while not done:
        obs, _, done, info = env.step(mode.forward({0: obs})[0]["action"].numpy())
    return info["eval_episode_return"]


def test_a_monotonic_mix_finds_the_better_game(tmp_path, learned):
    got = play("qmix", learned, tmp_path)
    learned.is_true(got == 8, f"return {got}")


def test_a_sum_does_not(tmp_path, learned):
    got = play("qmix", learned, tmp_path, mixer=False)
    learned.is_true(got == 7, f"return {got}")


def test_independent_learners_do_not(tmp_path, learned):
    got = play("madqn", learned, tmp_path, mixer=False)
    learned.is_true(got == 7, f"return {got}")


@pytest.mark.parametrize(("policy", "updates"), [("wqmix", 400), ("qtran", 1600)])
def test_the_best_pair_beside_the_worst(policy, updates, tmp_path, learned):
    got = play(policy, learned, tmp_path, "nonmonotonic", policy, updates)
    learned.is_true(got == 8, f"return {got}")


@pytest.mark.parametrize("policy", ["qmix", "collaq", "madqn"])
def test_landmarks_are_shared_out(policy, tmp_path, learned):
    path = CONFIGS / "grid_spread" / f"grid_spread_{policy}_config.py"
    main_config, create_config = read_config(str(path))
    main_config.exp_name = str(tmp_path / "run")
    main_config.env.stop_value = 0  # chance gives about -2.2
    main_config.policy.eval.evaluator.eval_freq = 100
    serial_pipeline((main_config, create_config), seed=learned.seed, max_env_step=30_000)
    learned.converged(tmp_path / "run", 30_000)
