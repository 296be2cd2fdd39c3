"""Keys that public configs of a policy set, and no class has a default for, are known.

Those with a default are known by it, see ``tests/policy/test_config_defaults.py``.
"""

import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.utils import POLICY_REGISTRY
from ding.utils.errors import ConfigError, UnknownTypeError
from ding.utils.settings import put

EPS = {"other.eps": dict(type="exp", start=0.95, end=0.1, decay=10000)}
DATA = {
    "collect.data_type": "naive",
    "collect.data_path": "data.pkl",
    "learn.train_epoch": 3,
    "learn.data_path": None,
}
FEATURES = {"model.obs_shape": 4, "model.action_shape": 2}
REAL = {"model.obs_shape": 3, "model.action_shape": 1}
QUANTILES = {**FEATURES, "model.num_quantiles": 32}
DUELING = {**FEATURES, "model.dueling": True}
LSTM = {**FEATURES, "model.lstm_type": "pytorch", "unroll_len": 42}
BC = {**DATA, "learn.multi_gpu": False, "learn.target_update_freq": 100}
DEMONSTRATIONS = {
    "collect.collect_count": 9,
    "collect.model_path": "",
    "collect.save_path": "",
    "collect.expert_data_path": "",
    "other.eps.collect": 0.2,
}
OFFLINE = {
    "cql": {**REAL, **DATA, "command": {}},
    "td3_bc": {**REAL, **DATA, "command": {}},
    "iql": {**REAL, **DATA},
    "bcq": {**REAL, **DATA, "learn.learning_rate_alpha": 3e-4},
    "edac": {
        **REAL,
        **DATA,
        "model.actor_head_layer_num": 2,
        "model.critic_head_layer_num": 2,
        "learn.learning_rate_value": 3e-4,
        "learn.min_q_weight": 1.0,
    },
    "discrete_cql": {**QUANTILES, **DATA},
    "cql_discrete": {**QUANTILES, **DATA},
    "bc": {
        **REAL,
        **BC,
        **EPS,
        "bc_model_path": "abs path",
        "env_name": "maze",
        "maze_size": 16,
        "num_actions": 4,
        "max_bfs_steps": 100,
        "show_train_test_accuracy": True,
        "model.action_space": "regression",
        "model.actor_head_hidden_size": 32,
        "model.actor_head_layer_num": 2,
        "continuous": True,
        "loss_type": "l1_loss",
        "collect.model_path": "model.pth.tar",
        "collect.n_episode": 10,
        "collect.noise_sigma": dict(type="exp", start=0.5, end=0.1, decay=1000),
    },
    "bc of choices": {**DUELING, **BC, "continuous": False, "collect.n_sample": 8},
    "bc of images": {**FEATURES, **BC, "model.obs_shape": [8, 16, 16], "model.strides": [1] * 4},
}
DQN = {
    **DUELING,
    "load_path": "./ckpt/ckpt_best.pth.tar",
    "random_collect_size": 32,
    "model.head_layer_num": 1,
    "model.init_bias": 0.0,
    "model.noise": False,
    "learn.learner.learner_num": 1,
    "learn.learner.send_policy_freq": 1,
    "learn.learner.load_path": "",
    "learn.batch_size": 16,
    "collect.n_sample": 16,
    "collect.data_path": "data.pkl",
    "collect.data_type": "naive",
    "collect.model_path": "ckpt_best.pth.tar",
    "collect.save_path": "demo.pkl",
    "collect.collector": dict(collector_num=2, update_policy_second=3, get_train_sample=True),
    "other.commander": dict(
        collector_task_space=2, learner_task_space=1, eval_interval=30, league={}
    ),
    "other.replay_buffer.replay_buffer_size": 1000.0,
}
PPO = {
    **FEATURES,
    **EPS,
    "continuous": False,
    "load_path": "./ckpt/ckpt_best.pth.tar",
    "model.action_space": "discrete",
    "model.activation": "tanh",
    "model.bound_type": None,
    "model.share_encoder": True,
    "model.sigma_type": "independent",
    "model.fixed_sigma_value": 0.3,
    "model.encoder_hidden_size_list": [16, 16],
    "model.actor_head_hidden_size": 16,
    "model.actor_head_layer_num": 1,
    "model.critic_head_hidden_size": 16,
    "model.critic_head_layer_num": 1,
    "learn.epoch_per_collect": 2,
    "learn.update_per_collect": 2,
    "learn.multi_gpu": False,
    "learn.batch_size": 60,
    "learn.lr_scheduler": dict(epoch_num=100, min_lr_lambda=0.1),
    "collect.n_sample": 128,
    "collect.env_num": 4,
    "collect.collector_env_num": 4,
    "collect.collector_logit": False,
    "collect.model_path": "model.pth.tar",
    "collect.collector": dict(get_train_sample=True, reward_shaping=False),
    "eval.env_num": 2,
    "other.replay_buffer.replay_buffer_size": 1000,
}
VALUE_BASED = {
    "rainbow": {**FEATURES, "learn.iqn": False},
    "iqn": QUANTILES,
    "fqf": {**QUANTILES, "model.quantile_embedding_size": 64},
    "qrdqn": {**QUANTILES, **DEMONSTRATIONS, "learn.learner.load_path": ""},
    "sql": {**DUELING, "collect.model_path": ""},
    "mdqn": DUELING,
    "dqn": {**FEATURES, "learn.alpha": 0.1, "learn.discount_factor": 0.9},
    "bdq": {
        "model.obs_shape": 4,
        "model.num_branches": 2,
        "model.action_bins_per_branch": 3,
        "load_path": "",
    },
    "sqn": {**DUELING, "learn.multi_gpu": False},
    "dqfd": DUELING,
    "r2d2": {**LSTM, "model.res_link": True},
    "r2d3": LSTM,
}


def configs(type_, settings):
    is_real = settings["model.obs_shape"] == 3
    env = dict(env_id="Pendulum-v1" if is_real else "CartPole-v1", stop_value=1000)
    env.update(collector_env_num=4, evaluator_env_num=2, n_evaluator_episode=2)
    main = EasyDict(exp_name="run", env=env, policy=dict(cuda=False, model={}))
    for path, value in settings.items():
        put(main.policy, path, EasyDict(value) if isinstance(value, dict) else value)
    modules = [POLICY_REGISTRY[type_].__module__]
    create = dict(env=dict(type="gymnasium"), policy=dict(type=type_, import_names=modules))
    return main, EasyDict(create)


@pytest.mark.parametrize("name", OFFLINE)
def test_keys_of_offline_policies(name):
    main, create = configs(name.partition(" ")[0], OFFLINE[name])
    compile_run_config(main, create, on_policy=False, strict=True, collects=False)


@pytest.mark.parametrize("type_", VALUE_BASED)
def test_keys_of_value_based_policies(type_):
    main, create = configs(type_, {"collect.n_sample": 64, **VALUE_BASED[type_]})
    notes = Notes()
    compile_run_config(main, create, notes=notes, strict=True)
    assert not notes.adapted


@pytest.mark.parametrize(
    ("type_", "settings", "pipeline"),
    [("dqn", DQN, serial_pipeline), ("ppo", PPO, serial_pipeline_onpolicy)],
)
def test_all_counted_keys_in_a_run(type_, settings, pipeline):
    main, create = configs(type_, settings)
    create.update(
        env=dict(type="cartpole", import_names=["dizoo.classic_control.cartpole.envs"]),
        env_manager=dict(type="base", import_names=["ding.envs.env_manager.base_env_manager"]),
        collector=dict(type="sample", import_names=["ding.worker"]),
    )
    notes = Notes()
    compile_run_config(main, create, notes=notes, strict=True)
    assert len(notes.adapted) == 1  # the environment
    pipeline((main, create), seed=0, max_train_iter=1)
    main.policy.learn.batch_sizes = main.policy.learn.pop("batch_size")
    with pytest.raises(ConfigError, match=r"did you mean policy\.learn\.batch_size"):
        pipeline((main, create), seed=0)


@pytest.mark.parametrize("type_", ["ngu", "dreamer", "mbsac", "stevesac", "ibc", "pd"])
@pytest.mark.parametrize("imports", [False, True])
def test_policies_that_are_left_out_are_named(type_, imports):
    main, create = configs("dqn", FEATURES)
    create.policy = EasyDict(type=type_)
    if imports:
        create.policy.import_names = [f"ding.policy.{type_}"]
    with pytest.raises(UnknownTypeError, match=f"'{type_}(_command)?' .* is left out of this"):
        serial_pipeline((main, create), seed=0)
