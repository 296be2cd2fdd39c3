"""Imitation of a policy of the zoo reaches most of what that policy reaches."""

import json
import runpy

import pytest

from ding.entry import (
    serial_pipeline_bco,
    serial_pipeline_dt,
    serial_pipeline_gail,
    serial_pipeline_guided_cost,
    serial_pipeline_reward_model_onpolicy,
    serial_pipeline_sqil,
    serial_pipeline_trex,
)
from tests.learning.test_learning import CONFIGS, train

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_sqil(tmp_path, learned):
    config = "cartpole/cartpole_sqil_config.py"
    train(serial_pipeline_sqil, config, 350, 40_000, tmp_path, learned)


def test_gail(tmp_path, learned):
    config = "cartpole/cartpole_gail_config.py"
    train(serial_pipeline_gail, config, 195, 60_000, tmp_path, learned)


def test_pwil(tmp_path, learned):
    config = "cartpole/cartpole_pwil_config.py"
    train(serial_pipeline_reward_model_onpolicy, config, 195, 60_000, tmp_path, learned)


def test_guided_cost(tmp_path, learned):
    config = "cartpole/cartpole_guided_cost_config.py"
    train(serial_pipeline_guided_cost, config, 195, 60_000, tmp_path, learned)


def test_trex(tmp_path, learned):
    config = "cartpole/cartpole_trex_config.py"
    train(serial_pipeline_trex, config, 195, 60_000, tmp_path, learned)


def test_bco(tmp_path, learned):
    config = "cartpole/cartpole_bco_config.py"
    train(serial_pipeline_bco, config, 350, 10_000, tmp_path, learned)


def test_decision_transformer(tmp_path, learned, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = runpy.run_path(str(CONFIGS / "cartpole/cartpole_dt_config.py"))
    script["collect"]()
    main, limit = script["main_config"], 1200
    main.env.update(stop_value=350, n_evaluator_episode=20)
    serial_pipeline_dt((main, script["create_config"]), seed=learned.seed, max_train_iter=limit)
    end = json.loads((tmp_path / main.exp_name / "run.json").read_text())
    reached = end["status"] == "converged"
    learned.at_most(end["train_iter"] if reached else 2 * limit, limit + 1, f"{end}")
