"""Configs that set every key that public configs of offline policies set are known."""

import pytest
from easydict import EasyDict

from ding.config.compile import compile_run_config
from ding.utils import POLICY_REGISTRY

CONTINUOUS = dict(obs_shape=3, action_shape=1)
HIDDEN = dict(actor_head_hidden_size=32, critic_head_hidden_size=32)
EVAL = dict(evaluator=dict(eval_freq=100))
DATA = dict(data_type="naive", data_path="data.pkl")
BUFFER = dict(replay_buffer=dict(replay_buffer_size=1000))
SAC_LEARN = dict(
    data_path=None,
    train_epoch=3,
    batch_size=32,
    learning_rate_q=3e-4,
    learning_rate_policy=1e-4,
    learning_rate_alpha=1e-4,
    alpha=0.2,
    auto_alpha=False,
)
CONFIGS = {
    "cql": dict(
        command=dict(),
        model=dict(**CONTINUOUS, **HIDDEN, twin_critic=True, action_space="reparameterization"),
        learn=dict(
            **SAC_LEARN,
            lagrange_thresh=-1.0,
            min_q_weight=5.0,
            with_lagrange=False,
            discount_factor=0.99,
            ignore_done=False,
            target_theta=0.005,
        ),
        collect=dict(**DATA, unroll_len=1, collector_logit=False),
    ),
    "td3_bc": dict(
        command=dict(),
        priority=False,
        random_collect_size=100,
        model=dict(**CONTINUOUS, **HIDDEN, twin_critic=True, action_space="regression"),
        learn=dict(
            train_epoch=3,
            batch_size=32,
            learning_rate_actor=1e-3,
            learning_rate_critic=1e-3,
            actor_update_freq=2,
            noise=True,
            noise_sigma=0.2,
            noise_range=dict(min=-0.5, max=0.5),
            alpha=2.5,
            discount_factor=0.99,
            ignore_done=False,
            target_theta=0.005,
        ),
        collect=dict(**DATA, unroll_len=1, noise_sigma=0.1),
    ),
    "cql_discrete": dict(
        priority=False,
        discount_factor=0.97,
        nstep=1,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16], num_quantiles=8),
        learn=dict(
            train_epoch=3,
            update_per_collect=1,
            batch_size=32,
            learning_rate=1e-3,
            target_update_freq=100,
            min_q_weight=10.0,
            kappa=1.0,
        ),
        collect=dict(**DATA, n_sample=8),
        other=dict(eps=dict(type="exp", start=0.95, end=0.1, decay=10000)),
    ),
}
CONFIGS["iql"] = dict(
    model=CONTINUOUS,
    learn=dict(
        data_path=None,
        train_epoch=3,
        batch_size=32,
        learning_rate_q=3e-4,
        learning_rate_policy=3e-4,
        beta=0.05,
        tau=0.7,
    ),
    collect=DATA,
)
CONFIGS["bcq"] = dict(
    model=dict(**CONTINUOUS, actor_head_hidden_size=[32], critic_head_hidden_size=[32], phi=0.05),
    learn=dict(
        data_path=None,
        train_epoch=3,
        batch_size=32,
        learning_rate_q=3e-4,
        learning_rate_policy=3e-4,
        learning_rate_alpha=3e-4,
        lmbda=0.75,
        learner=dict(hook=dict(save_ckpt_after_iter=100)),
    ),
    collect=DATA,
)
CONFIGS["edac"] = dict(
    model=dict(
        **CONTINUOUS,
        **HIDDEN,
        ensemble_num=10,
        actor_head_layer_num=2,
        critic_head_layer_num=2,
    ),
    learn=dict(
        **SAC_LEARN,
        eta=1.0,
        with_q_entropy=False,
        learning_rate_value=3e-4,
        min_q_weight=1.0,
        learner=dict(hook=dict(save_ckpt_after_iter=100)),
    ),
    collect=DATA,
)
BC_LEARN = dict(
    multi_gpu=False,
    train_epoch=3,
    update_per_collect=1,
    batch_size=32,
    learning_rate=1e-3,
    lr_decay=True,
    decay_epoch=30,
    decay_rate=0.1,
    warmup_lr=1e-4,
    warmup_epoch=3,
    optimizer="SGD",
    momentum=0.9,
    weight_decay=1e-4,
    target_update_freq=100,
    tanh_mask=True,
    show_accuracy=True,
    ce_label_smooth=True,
    learner=dict(hook=dict(log_show_after_iter=100, save_ckpt_after_iter=100)),
)
CONFIGS["bc"] = dict(
    continuous=True,
    loss_type="l1_loss",
    action_shape=1,
    bc_model_path="abs path",
    env_name="maze",
    maze_size=16,
    max_bfs_steps=100,
    num_actions=4,
    show_train_test_accuracy=True,
    model=dict(
        **CONTINUOUS,
        action_space="regression",
        actor_head_hidden_size=32,
        actor_head_layer_num=2,
    ),
    learn=BC_LEARN,
    collect=dict(
        **DATA,
        model_path="model.pth.tar",
        n_episode=10,
        noise=True,
        noise_sigma=dict(type="exp", start=0.5, end=0.1, decay=1000),
        noise_range=dict(min=-0.5, max=0.5),
    ),
    other=dict(eps=dict(type="exp", start=0.95, end=0.1, decay=10000)),
)
CONFIGS["bc discrete"] = dict(
    continuous=False,
    model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16], dueling=True),
    learn=BC_LEARN,
    collect=dict(**DATA, n_sample=8),
)
CONFIGS["bc images"] = dict(
    continuous=False,
    model=dict(obs_shape=[8, 16, 16], action_shape=2, strides=[1, 1, 1, 1]),
    learn=BC_LEARN,
)
CONFIGS["discrete_cql"] = CONFIGS["cql_discrete"]


@pytest.mark.parametrize("type_", CONFIGS)
def test_all_counted_keys(type_):
    policy = EasyDict(cuda=False, eval=EVAL, other=BUFFER)
    policy.update({**CONFIGS[type_], "other": {**BUFFER, **CONFIGS[type_].get("other", {})}})
    discrete = policy.model.obs_shape != 3
    type_ = type_.partition(" ")[0]
    env = dict(
        env_id="CartPole-v1" if discrete else "Pendulum-v1",
        collector_env_num=1,
        evaluator_env_num=2,
        n_evaluator_episode=2,
        stop_value=1000,
    )
    create = dict(
        env=dict(type="gymnasium"),
        env_manager=dict(type="base"),
        policy=dict(type=type_, import_names=[POLICY_REGISTRY[type_].__module__]),
    )
    main = dict(exp_name="run", env=env, policy=policy)
    cfg = compile_run_config(main, create, on_policy=False, strict=True, collects=False)
    assert cfg.policy.learn.batch_size == 32
