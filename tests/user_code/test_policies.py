"""Policies that users wrote row by row train unchanged in the pipelines."""

import json
from pathlib import Path

import pytest
import torch

from ding.entry import eval, serial_pipeline, serial_pipeline_onpolicy
from tests.user_code import row_policies

assert row_policies.UserQ  # registers the policies


def configs(kind, manager="base", **policy):
    main = dict(
        exp_name="run",
        env=dict(
            env_id="CartPole-v1",
            max_episode_steps=50,
            collector_env_num=2,
            evaluator_env_num=2,
            n_evaluator_episode=2,
            stop_value=1000,
        ),
        policy=dict(
            model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16]),
            learn=dict(learner=dict(hook=dict(log_show_after_iter=5, save_ckpt_after_iter=10))),
            **policy,
        ),
    )
    create = dict(
        env=dict(type="gymnasium"), env_manager=dict(type=manager), policy=dict(type=kind)
    )
    return main, create


def logged(name):
    rows = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    return [row[name] for row in rows if name in row]


@pytest.mark.parametrize(
    ("kind", "pipeline", "monitored"),
    [
        ("user_q", serial_pipeline, "q_value"),
        ("user_recurrent", serial_pipeline, "q_value"),
        ("user_ppo", serial_pipeline_onpolicy, "approx_kl"),
    ],
)
class TestPipelines:
    @pytest.mark.slow
    def test_trains_and_goes_on(self, kind, pipeline, monitored):
        policy = pipeline(configs(kind), seed=0, max_train_iter=20)
        assert isinstance(policy, torch.nn.Module) is False
        for name in ("total_loss", monitored):
            values = logged(f"learner_iter/{name}_avg")
            assert len(values) >= 3
            assert all(value == value for value in values)
        main, create = configs(kind)
        main["policy"]["learn"]["resume_training"] = True
        pipeline((main, create), seed=0, max_train_iter=30)
        result = eval(configs(kind), seed=0, load_path="run/ckpt/ckpt_best.pth.tar")
        assert float(result) > 0


def test_priorities_reach_the_buffer():
    serial_pipeline(configs("user_q"), seed=0, max_train_iter=10)
    assert logged("learner_iter/total_loss_avg")
