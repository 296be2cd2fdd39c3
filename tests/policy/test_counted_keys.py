"""Configs of actor-critics and teams that set each key that public configs set compile and learn.

Keys that a class has a default for are listed by name, the others with a value.
"""

import json

import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.policy import get_policy_cls
from ding.utils.default_helper import flatten_dict
from ding.utils.settings import put

STEP = "learn.batch_size learn.learning_rate learn.entropy_weight collect.unroll_len "
CLIPPED = f"{STEP} learn.clip_ratio "
EPS = {"other.eps": dict(type="exp", start=1, end=0.05, decay=100)}
BUFFER = "other.replay_buffer."
VECTOR = {
    "model.obs_shape": 4,
    "model.action_shape": 2,
    "model.encoder_hidden_size_list": [16],
}
HEADS = {"model.actor_head_hidden_size": 16, "model.critic_head_hidden_size": 16}
DISCRETE = {"model.action_space": "discrete"}
SMALL = {"learn.batch_size": 16, "collect.n_sample": 32}
EPISODES = {"learn.batch_size": 16, "collect.n_episode": 4}
AGENTS = {
    "model.agent_num": 2,
    "model.agent_obs_shape": 8,
    "model.global_obs_shape": 8,
    "model.action_shape": 5,
}
FEW = {
    "learn.update_per_collect": 2,
    "learn.batch_size": 4,
    "collect.unroll_len": 4,
    "collect.env_num": 2,
    "eval.env_num": 2,
}
TEAM = {
    **FEW,
    **EPS,
    "agent_num": 2,
    "model.agent_num": 2,
    "model.obs_shape": 8,
    "model.global_obs_shape": 8,
    "model.action_shape": 5,
    "model.hidden_size_list": [8, 8],
    "model.lstm_type": "gru",
    "model.dueling": False,
    f"{BUFFER}replay_buffer_size": 100,
    f"{BUFFER}max_reuse": 1e9,
    f"{BUFFER}max_staleness": 1e9,
}
TEAM_NAMES = (
    "agent_num learn.learning_rate learn.clip_value learn.target_update_theta "
    "learn.discount_factor learn.double_q "
)
#: By policy type: the names of keys that have a default, and the settings of the others.
CONFIGS: dict[str, tuple[str, dict[str, object]]] = {
    "a2c": (
        f"{STEP} action_space priority learn.value_weight learn.adv_norm learn.betas "
        "learn.grad_norm collect.discount_factor collect.gae_lambda",
        {
            **VECTOR,
            **HEADS,
            **DISCRETE,
            **SMALL,
            "model.critic_head_layer_num": 1,
            "learn.discount_factor": 0.9,
            "learn.epoch_per_collect": 2,
            "learn.normalize_advantage": False,
            "collect.collector.collect_print_freq": 100,
        },
    ),
    "pg": (
        f"{STEP} action_space learn.grad_norm collect.discount_factor",
        {**VECTOR, **DISCRETE, **EPISODES},
    ),
    "ppo_pg": (
        f"{CLIPPED} action_space learn.epoch_per_collect learn.adv_norm collect.discount_factor "
        "collect.collector.get_train_sample",
        {**VECTOR, **EPISODES},
    ),
    "ppo_offpolicy": (
        f"{CLIPPED} action_space learn.update_per_collect learn.value_weight learn.adv_norm "
        f"learn.value_norm collect.discount_factor collect.gae_lambda {BUFFER}replay_buffer_size",
        {
            **VECTOR,
            **HEADS,
            **DISCRETE,
            **SMALL,
            "recompute_adv": True,
            "random_collect_size": 16,
            "model.actor_head_layer_num": 1,
            "model.critic_head_layer_num": 1,
            "learn.update_per_collect": 2,
            "learn.epoch_per_collect": 2,
            "learn.nstep": 1,
            "learn.nstep_return": False,
            "learn.learner.hook.save_ckpt_after_iter": 1000,
            f"{BUFFER}replay_buffer_size": 100,
            f"{BUFFER}max_use": 2,
            f"{BUFFER}min_sample_ratio": 1,
        },
    ),
    "ppg": (
        "learn.batch_size learn.learning_rate learn.entropy_weight learn.clip_ratio "
        "learn.actor_epoch_per_collect learn.critic_epoch_per_collect learn.aux_freq "
        "learn.value_norm learn.value_weight collect.discount_factor other",
        {**VECTOR, **HEADS, **SMALL, "model.impala_cnn_encoder": False, "learn.aux_freq": 1},
    ),
    "ppg_offpolicy": (
        f"{CLIPPED} learn.update_per_collect learn.adv_norm learn.value_weight learn.aux_freq "
        "learn.beta_weight learn.epochs_aux collect.discount_factor collect.gae_lambda",
        {
            **VECTOR,
            **HEADS,
            **SMALL,
            "model.critic_head_layer_num": 1,
            "learn.update_per_collect": 2,
            "learn.aux_freq": 1,
            f"{BUFFER}multi_buffer": True,
            f"{BUFFER}policy": dict(replay_buffer_size=100, max_use=3),
            f"{BUFFER}value": dict(replay_buffer_size=100, max_use=5),
        },
    ),
    "happo": (
        f"{CLIPPED} multi_agent action_space agent_num learn.epoch_per_collect "
        "learn.critic_learning_rate learn.value_weight learn.adv_norm learn.value_norm "
        "learn.ppo_param_init learn.grad_clip_type learn.grad_clip_value learn.ignore_done other",
        {
            **AGENTS,
            **DISCRETE,
            **SMALL,
            "agent_num": 2,
            "model.use_lstm": False,
            "model.encoder_hidden_size_list": [32],
            "learn.multi_gpu": False,
            "collect.env_num": 2,
            "eval.env_num": 2,
        },
    ),
    "discrete_sac": (
        "on_policy multi_agent random_collect_size model.twin_critic learn.learning_rate_q "
        "learn.learning_rate_policy learn.learning_rate_alpha learn.target_theta "
        "learn.discount_factor learn.alpha learn.auto_alpha learn.log_space learn.target_entropy "
        "learn.ignore_done collect.unroll_len",
        {
            **AGENTS,
            **HEADS,
            **FEW,
            **EPS,
            "multi_agent": True,
            "command": {},
            "random_collect_size": 16,
            "collect.n_sample": 32,
            "collect.unroll_len": 1,
            f"{BUFFER}replay_buffer_size": 100,
        },
    ),
    "qmix": (TEAM_NAMES, {**TEAM, "model.mixer": True}),
    "wqmix": (f"{TEAM_NAMES} learn.wqmix_ow learn.alpha", TEAM),
    "qtran": (
        f"{TEAM_NAMES} learn.td_weight learn.opt_weight learn.nopt_min_weight",
        {**TEAM, "model.embedding_size": 8},
    ),
    "collaq": (
        f"{TEAM_NAMES} learn.collaq_loss_weight priority priority_IS_weight",
        {
            **TEAM,
            "model.mixer": True,
            "model.alone_obs_shape": 6,
            "model.attention": True,
            "model.attention_size": 8,
            "model.self_feature_range": [0, 2],
            "model.ally_feature_range": [6, 8],
        },
    ),
    "madqn": (
        f"{TEAM_NAMES} nstep",
        {**TEAM, "model.global_cooperation": True, "command": {}},
    ),
    "coma": (
        "agent_num learn.learning_rate learn.target_update_theta learn.discount_factor "
        "learn.td_lambda learn.policy_weight learn.value_weight learn.entropy_weight",
        {
            **FEW,
            **EPS,
            "agent_num": 2,
            "model.agent_num": 2,
            "model.obs_shape": dict(agent_state=8, global_state=8),
            "model.action_shape": 5,
            "model.actor_hidden_size_list": [8, 8],
            f"{BUFFER}replay_buffer_size": 100,
            f"{BUFFER}max_use": 10,
        },
    ),
}
TEAMS = ("qmix", "wqmix", "qtran", "collaq", "madqn", "coma")
AMOUNTS = ({"collect.n_sample": 4}, {"collect.n_episode": 2})
RUNS = [(type_, {}) for type_ in CONFIGS if type_ not in TEAMS]
RUNS += [(type_, amount) for type_ in TEAMS for amount in AMOUNTS]


def configs(type_, settings, folder="run"):
    env = dict(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2, stop_value=1000)
    if "model.agent_num" in settings:
        grid = dict(agent_num=2, manager=dict(shared_memory=False, reset_timeout=6000))
        env, env_type = {**env, **grid}, "grid_spread"
    else:
        env, env_type = {**env, "env_id": "CartPole-v1"}, "cartpole"
    evaluator = dict(evaluator=dict(eval_freq=100))
    policy = dict(cuda=False, model={}, eval=evaluator)
    main = EasyDict(exp_name=str(folder), env=env, policy=policy)
    for path, value in settings.items():
        put(main.policy, path, EasyDict(value) if isinstance(value, dict) else value)
    create = dict(env=dict(type=env_type), env_manager=dict(type="base"), policy=dict(type=type_))
    create["collector"] = dict(type="episode" if "collect.n_episode" in settings else "sample")
    return main, EasyDict(create)


@pytest.mark.parametrize(("type_", "amount"), RUNS)
def test_all_counted_keys(type_, amount, tmp_path):
    names, settings = CONFIGS[type_]
    defaults = get_policy_cls(EasyDict(type=type_)).default_config()
    assert set(names.split()) <= {*flatten_dict(defaults, delimiter="."), *defaults}
    main, create = configs(type_, {**settings, **amount}, tmp_path / "run")
    notes = Notes()
    cfg = compile_run_config(main, create, notes=notes, strict=True)
    assert not notes.unknown
    pipeline = serial_pipeline_onpolicy if cfg.policy.on_policy else serial_pipeline
    pipeline((main, create), seed=0, max_env_step=40)
    end = json.loads((tmp_path / "run" / "run.json").read_text())
    assert end["train_iter"] > 0
    assert not end.get("warnings")


AGENTS_OF_PPO = {
    **AGENTS,
    **HEADS,
    **DISCRETE,
    **SMALL,
    "multi_agent": True,
    "continuous": False,
    "on_policy": True,
    "model.actor_head_layer_num": 1,
    "model.critic_head_layer_num": 1,
    "model.sigma_type": "independent",
    "model.bound_type": None,
    "learn.update_per_collect": 50,
    "learn.multi_gpu": False,
    "collect.env_num": 2,
}
HYBRID = {
    **VECTOR,
    **HEADS,
    **SMALL,
    "action_space": "hybrid",
    "model.action_shape": dict(action_type_shape=3, action_args_shape=2),
    "model.action_space": "hybrid",
    "model.sigma_type": "fixed",
    "model.fixed_sigma_value": 0.3,
    "model.bound_type": "tanh",
    "collect.collector.collect_print_freq": 1,
}


@pytest.mark.parametrize("settings", [AGENTS_OF_PPO, HYBRID], ids=["agents", "hybrid"])
def test_all_counted_keys_of_ppo(settings):
    notes = Notes()
    main, create = configs("ppo", settings)
    compile_run_config(main, create, notes=notes, env_setting=[object, [], []], strict=True)
    assert not notes.unknown
