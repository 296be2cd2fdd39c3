"""Configs that set every key that public configs of a policy set compile and start."""

import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.utils.errors import ConfigError, UnknownTypeError

HOOKS = dict(
    load_ckpt_before_run="",
    log_show_after_iter=100,
    save_ckpt_after_iter=1000,
    save_ckpt_after_run=True,
)
EPS = dict(type="exp", start=0.95, end=0.1, decay=10000)
DQN = dict(
    cuda=False,
    multi_gpu=False,
    on_policy=False,
    priority=True,
    priority_IS_weight=True,
    noisy_net=False,
    load_path="./ckpt/ckpt_best.pth.tar",
    random_collect_size=32,
    discount_factor=0.97,
    nstep=3,
    model=dict(
        obs_shape=4,
        action_shape=2,
        encoder_hidden_size_list=[16, 16],
        dueling=True,
        head_layer_num=1,
        init_bias=0.0,
        noise=False,
    ),
    learn=dict(
        batch_size=16,
        learning_rate=0.001,
        update_per_collect=1,
        target_update_freq=100,
        ignore_done=False,
        learner=dict(
            cfg_type="BaseLearnerDict",
            learner_num=1,
            send_policy_freq=1,
            load_path="",
            log_policy=True,
            train_iterations=10**9,
            dataloader=dict(num_workers=0),
            hook=HOOKS,
        ),
    ),
    collect=dict(
        n_sample=16,
        unroll_len=1,
        data_path="data.pkl",
        data_type="naive",
        model_path="ckpt_best.pth.tar",
        save_path="demo.pkl",
        collector=dict(collector_num=2, update_policy_second=3, get_train_sample=True),
    ),
    eval=dict(evaluator=dict(eval_freq=100, render=dict(render_freq=-1, mode="train_iter"))),
    other=dict(
        eps=EPS,
        commander=dict(
            collector_task_space=2, learner_task_space=1, eval_interval=30, league=dict()
        ),
        replay_buffer=dict(
            type="advanced",
            cfg_type="AdvancedReplayBufferDict",
            replay_buffer_size=1000,
            alpha=0.6,
            beta=0.4,
            anneal_step=int(1e5),
            deepcopy=False,
            enable_track_used_data=False,
            max_use=float("inf"),
            max_staleness=1e4,
            monitor=dict(
                periodic_thruput=dict(seconds=60),
                sampled_data_attr=dict(average_range=5, print_freq=200),
            ),
            thruput_controller=dict(
                push_sample_rate_limit=dict(max=float("inf"), min=0),
                window_seconds=30,
                sample_min_limit_ratio=1,
            ),
        ),
    ),
)
PPO = dict(
    cuda=False,
    multi_gpu=False,
    on_policy=True,
    action_space="discrete",
    continuous=False,
    recompute_adv=True,
    multi_agent=False,
    load_path="./ckpt/ckpt_best.pth.tar",
    model=dict(
        obs_shape=4,
        action_shape=2,
        action_space="discrete",
        activation="tanh",
        bound_type=None,
        share_encoder=True,
        sigma_type="independent",
        fixed_sigma_value=0.3,
        encoder_hidden_size_list=[16, 16],
        actor_head_hidden_size=16,
        actor_head_layer_num=1,
        critic_head_hidden_size=16,
        critic_head_layer_num=1,
    ),
    learn=dict(
        epoch_per_collect=2,
        update_per_collect=2,
        batch_size=60,
        learning_rate=3e-4,
        value_weight=0.5,
        entropy_weight=0.01,
        clip_ratio=0.2,
        adv_norm=True,
        value_norm=True,
        ppo_param_init=True,
        grad_clip_type="clip_norm",
        grad_clip_value=0.5,
        ignore_done=False,
        multi_gpu=False,
        resume_training=False,
        kl_beta=0.05,
        kl_type="k1",
        pretrained_model_path=None,
        lr_scheduler=dict(epoch_num=100, min_lr_lambda=0.1),
        learner=dict(hook=HOOKS),
    ),
    collect=dict(
        n_sample=128,
        unroll_len=1,
        discount_factor=0.99,
        gae_lambda=0.95,
        env_num=4,
        collector_env_num=4,
        collector_logit=False,
        model_path="model.pth.tar",
        collector=dict(collect_print_freq=100, get_train_sample=True, reward_shaping=False),
    ),
    eval=dict(env_num=2, evaluator=dict(eval_freq=100)),
    other=dict(eps=EPS, replay_buffer=dict(replay_buffer_size=1000)),
)


@pytest.mark.parametrize("type_", ["ngu", "dreamer", "mbsac", "stevesac", "ibc", "pd"])
@pytest.mark.parametrize("imports", [False, True])
def test_policies_that_are_left_out_are_named(type_, imports):
    names = dict(import_names=[f"ding.policy.{type_}"]) if imports else {}
    env = dict(collector_env_num=1, evaluator_env_num=1, n_evaluator_episode=1, stop_value=1)
    main = EasyDict(exp_name="run", env=env, policy=dict())
    create = EasyDict(env=dict(type="cartpole"), policy=dict(type=type_, **names))
    with pytest.raises(UnknownTypeError, match=f"'{type_}(_command)?' .* is left out of this"):
        serial_pipeline((main, create), seed=0)


@pytest.mark.parametrize(
    ("type_", "policy", "pipeline"),
    [("dqn", DQN, serial_pipeline), ("ppo", PPO, serial_pipeline_onpolicy)],
)
def test_all_counted_keys(type_, policy, pipeline):
    env = dict(
        env_id="CartPole-v1",
        collector_env_num=4,
        evaluator_env_num=2,
        n_evaluator_episode=2,
        stop_value=195,
        manager=dict(shared_memory=False, reset_timeout=1000, reset_inplace=True),
    )
    main = EasyDict(exp_name="run", seed=0, env=env, policy=policy)
    create = EasyDict(
        env=dict(type="cartpole", import_names=["dizoo.classic_control.cartpole.envs"]),
        env_manager=dict(type="base", import_names=["ding.envs.env_manager.base_env_manager"]),
        policy=dict(type=type_, import_names=[f"ding.policy.{type_}"]),
        collector=dict(type="sample", import_names=["ding.worker"]),
    )
    notes = Notes()
    compile_run_config(main, create, notes=notes, strict=True)
    assert len(notes.adapted) == 1  # the environment
    pipeline((main, create), seed=0, max_train_iter=1)
    main.policy.learn.batch_sizes = main.policy.learn.pop("batch_size")
    with pytest.raises(ConfigError, match=r"did you mean policy\.learn\.batch_size"):
        pipeline((main, create), seed=0)
