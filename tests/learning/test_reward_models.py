"""Reward models solve what the same policies do not solve without them."""

import json

import pytest

from ding.config import read_config
from ding.entry import (
    serial_pipeline_reward_model_offpolicy,
    serial_pipeline_reward_model_onpolicy,
)
from tests.learning.test_learning import CONFIGS, train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("type_", ["rnd", "icm"])
def test_curiosity(type_, tmp_path, learned):
    config = f"deep_sea/deep_sea_{type_}_ppo_config.py"
    train(serial_pipeline_reward_model_onpolicy, config, 0.9, 60_000, tmp_path, learned)


def test_hindsight(tmp_path, learned):
    config = "bitflip/bitflip_her_dqn_config.py"
    train(serial_pipeline_reward_model_offpolicy, config, 0.9, 30_000, tmp_path, learned)


@pytest.mark.parametrize(
    ("config", "pipeline", "max_env_step"),
    [
        ("deep_sea/deep_sea_rnd_ppo_config.py", "serial_pipeline_onpolicy", 15_000),
        ("bitflip/bitflip_her_dqn_config.py", "serial_pipeline", 10_000),
    ],
)
def test_fails_without(config, pipeline, max_env_step, tmp_path, learned):
    import ding.entry

    main_config, create_config = read_config(str(CONFIGS / config))
    del main_config["reward_model"]
    returns = []
    for seed in range(3 * learned.seed, 3 * learned.seed + 3):
        main_config.exp_name = str(tmp_path / f"run{seed}")
        getattr(ding.entry, pipeline)(
            (main_config, create_config), seed=seed, max_env_step=max_env_step
        )
        end = json.loads((tmp_path / f"run{seed}" / "run.json").read_text())
        returns.append(end["best_return"])
    # Chance takes all sixteen steps to the right once in 65,536 episodes of some 900 in a run.
    failed = sum(best < main_config.env.stop_value for best in returns)
    learned.is_true(failed >= 2, f"{returns}")
