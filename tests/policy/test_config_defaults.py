"""Hyper-parameter defaults: what a config that leaves a key out means."""

import pytest

from ding.policy import DQNPolicy, Policy, PPOPolicy
from ding.utils.default_helper import flatten_dict

BASE = {
    "on_policy": False,
    "cuda": False,
    "multi_gpu": False,
    "bp_update_sync": True,
    "traj_len_inf": False,
    "learn.resume_training": False,
    "learn.compile": None,
    "learn.mixed_precision": False,
}
DQN = {
    "type": "dqn",
    "cuda": False,
    "on_policy": False,
    "priority": False,
    "priority_IS_weight": False,
    "priority_form": "absolute",
    "discount_factor": 0.97,
    "nstep": 1,
    "noisy_net": False,
    "model.encoder_hidden_size_list": [128, 128, 64],
    "learn.update_per_collect": 3,
    "learn.batch_size": 64,
    "learn.learning_rate": 0.001,
    "learn.target_update_freq": 100,
    "learn.target_theta": 0.005,
    "learn.ignore_done": False,
    "collect.n_sample": 8,
    "collect.unroll_len": 1,
    "other.eps.type": "exp",
    "other.eps.start": 0.95,
    "other.eps.end": 0.1,
    "other.eps.decay": 10000,
    "other.replay_buffer.replay_buffer_size": 10000,
}
PPO = {
    "type": "ppo",
    "cuda": False,
    "on_policy": True,
    "priority": False,
    "priority_IS_weight": False,
    "recompute_adv": True,
    "action_space": "discrete",
    "nstep_return": False,
    "multi_agent": False,
    "transition_with_policy_data": True,
    "learn.epoch_per_collect": 10,
    "learn.batch_size": 64,
    "learn.learning_rate": 0.0003,
    "learn.lr_scheduler": None,
    "learn.value_weight": 0.5,
    "learn.entropy_weight": 0.0,
    "learn.clip_ratio": 0.2,
    "learn.adv_norm": True,
    "learn.value_norm": True,
    "learn.ppo_param_init": True,
    "learn.grad_clip_type": "clip_norm",
    "learn.grad_clip_value": 0.5,
    "learn.ignore_done": False,
    "learn.kl_type": "k1",
    "learn.kl_beta": 0.0,
    "learn.pretrained_model_path": None,
    "collect.unroll_len": 1,
    "collect.discount_factor": 0.99,
    "collect.gae_lambda": 0.95,
}


@pytest.mark.parametrize(
    ("cls", "expected"),
    [(Policy, BASE), (DQNPolicy, {**BASE, **DQN}), (PPOPolicy, {**BASE, **PPO})],
)
def test_defaults(cls, expected):
    cfg = cls.default_config()
    assert cfg.pop("cfg_type") == f"{cls.__name__}Dict"
    flat = {key: value for key, value in flatten_dict(cfg, delimiter=".").items() if value != {}}
    assert flat == expected


def test_default_config_is_a_copy():
    DQNPolicy.default_config().learn.batch_size = 1
    DQNPolicy.default_config().model.encoder_hidden_size_list.append(1)
    assert DQNPolicy.default_config().learn.batch_size == 64
    assert DQNPolicy.default_config().model.encoder_hidden_size_list == [128, 128, 64]


def test_subclass_config_is_merged_over_its_bases():
    class Mine(DQNPolicy):
        config = dict(type="mine", learn=dict(batch_size=7))

    cfg = Mine.default_config()
    assert (cfg.type, cfg.learn.batch_size, cfg.learn.learning_rate) == ("mine", 7, 0.001)
    assert cfg.cfg_type == "MineDict"
