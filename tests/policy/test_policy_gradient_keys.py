"""Configs that set every key that public configs of these policies set compile and start."""

import pytest
from easydict import EasyDict

from ding.config.check import Notes
from ding.config.compile import compile_run_config
from ding.entry import serial_pipeline, serial_pipeline_onpolicy
from ding.utils import deep_merge_dicts

VECTOR = dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[16])
HEADS = dict(actor_head_hidden_size=16, critic_head_hidden_size=16)
EVAL = dict(evaluator=dict(eval_freq=100))
GAE = dict(discount_factor=0.99, gae_lambda=0.95)
CLIPPED = dict(batch_size=16, learning_rate=1e-3, entropy_weight=0.01, clip_ratio=0.2)
OFF_BUFFER = dict(replay_buffer_size=100, max_use=2, min_sample_ratio=1)
CONFIGS = {
    "a2c": dict(
        action_space="discrete",
        priority=False,
        model=dict(**VECTOR, **HEADS, action_space="discrete", critic_head_layer_num=1),
        learn=dict(
            batch_size=16,
            learning_rate=1e-3,
            value_weight=0.5,
            entropy_weight=0.01,
            adv_norm=True,
            betas=(0.9, 0.99),
            grad_norm=0.5,
            discount_factor=0.9,
            epoch_per_collect=2,
            normalize_advantage=False,
        ),
        collect=dict(n_sample=32, unroll_len=1, **GAE, collector=dict(collect_print_freq=100)),
    ),
    "pg": dict(
        action_space="discrete",
        model=dict(**VECTOR, action_space="discrete"),
        learn=dict(batch_size=16, learning_rate=1e-3, entropy_weight=0.01, grad_norm=5),
        collect=dict(n_episode=4, unroll_len=1, discount_factor=0.9),
    ),
    "ppo_pg": dict(
        action_space="discrete",
        model=VECTOR,
        learn=dict(**CLIPPED, epoch_per_collect=2, adv_norm=True),
        collect=dict(
            n_episode=4,
            unroll_len=1,
            discount_factor=0.9,
            collector=dict(get_train_sample=True),
        ),
    ),
    "ppo_offpolicy": dict(
        action_space="discrete",
        recompute_adv=True,
        random_collect_size=16,
        model=dict(
            **VECTOR,
            **HEADS,
            actor_head_layer_num=1,
            critic_head_layer_num=1,
            action_space="discrete",
        ),
        learn=dict(
            **CLIPPED,
            update_per_collect=2,
            epoch_per_collect=2,
            value_weight=0.5,
            adv_norm=True,
            value_norm=True,
            nstep=1,
            nstep_return=False,
            learner=dict(hook=dict(save_ckpt_after_iter=1000)),
        ),
        collect=dict(n_sample=32, unroll_len=1, **GAE),
        other=dict(replay_buffer=OFF_BUFFER),
    ),
    "ppg": dict(
        model=dict(**VECTOR, **HEADS, impala_cnn_encoder=False),
        learn=dict(
            **CLIPPED,
            actor_epoch_per_collect=1,
            critic_epoch_per_collect=1,
            aux_freq=1,
            value_norm=True,
            value_weight=0.5,
        ),
        collect=dict(n_sample=32, discount_factor=0.9),
        other=dict(),
    ),
    "ppg_offpolicy": dict(
        model=dict(**VECTOR, **HEADS, critic_head_layer_num=1),
        learn=dict(
            **CLIPPED,
            update_per_collect=2,
            adv_norm=True,
            value_weight=0.5,
            aux_freq=1,
            beta_weight=1,
            epochs_aux=2,
        ),
        collect=dict(n_sample=32, unroll_len=1, **GAE),
        other=dict(
            replay_buffer=dict(
                multi_buffer=True,
                policy=dict(replay_buffer_size=100, max_use=3),
                value=dict(replay_buffer_size=100, max_use=5),
            )
        ),
    ),
}


def configs(type_, policy, env_type="cartpole", **env):
    counts = dict(collector_env_num=2, evaluator_env_num=2, n_evaluator_episode=2, stop_value=195)
    main = EasyDict(exp_name="run", env={**counts, **env}, policy={**policy, "cuda": False})
    main = deep_merge_dicts(main, EasyDict(policy=dict(eval=EVAL)))
    create = EasyDict(
        env=dict(type=env_type), env_manager=dict(type="base"), policy=dict(type=type_)
    )
    if "n_episode" in policy["collect"]:
        create.collector = dict(type="episode")
    return main, create


@pytest.mark.parametrize("type_", CONFIGS)
def test_all_counted_keys(type_):
    main, create = configs(type_, CONFIGS[type_], env_id="CartPole-v1")
    notes = Notes()
    cfg = compile_run_config(main, create, notes=notes, strict=True)
    assert not notes.unknown
    pipeline = serial_pipeline_onpolicy if cfg.policy.on_policy else serial_pipeline
    pipeline((main, create), seed=0, max_train_iter=1)


def test_all_counted_keys_of_ppo_with_agents():
    policy = dict(
        multi_agent=True,
        action_space="discrete",
        continuous=False,
        on_policy=True,
        multi_gpu=False,
        model=dict(
            agent_num=3,
            agent_obs_shape=4,
            global_obs_shape=6,
            action_shape=2,
            action_space="discrete",
            actor_head_layer_num=1,
            critic_head_layer_num=1,
            sigma_type="independent",
            bound_type=None,
            **HEADS,
        ),
        learn=dict(
            **CLIPPED,
            epoch_per_collect=2,
            update_per_collect=50,
            value_weight=0.5,
            adv_norm=False,
            value_norm=True,
            ppo_param_init=True,
            grad_clip_type="clip_norm",
            grad_clip_value=10,
            ignore_done=False,
            multi_gpu=False,
        ),
        collect=dict(n_sample=32, unroll_len=1, env_num=2, **GAE),
    )
    main, create = configs("ppo", policy)
    notes = Notes()
    compile_run_config(main, create, notes=notes, env_setting=[object, [], []], strict=True)
    assert not notes.unknown


def test_all_counted_keys_of_ppo_with_hybrid_actions():
    policy = dict(
        action_space="hybrid",
        recompute_adv=True,
        model=dict(
            obs_shape=4,
            action_shape=dict(action_type_shape=3, action_args_shape=2),
            action_space="hybrid",
            encoder_hidden_size_list=[16],
            sigma_type="fixed",
            fixed_sigma_value=0.3,
            bound_type="tanh",
            **HEADS,
        ),
        learn=dict(**CLIPPED, epoch_per_collect=2, value_weight=0.5, adv_norm=True),
        collect=dict(n_sample=32, collector=dict(collect_print_freq=1), **GAE),
    )
    main, create = configs("ppo", policy)
    notes = Notes()
    compile_run_config(main, create, notes=notes, env_setting=[object, [], []], strict=True)
    assert not notes.unknown
