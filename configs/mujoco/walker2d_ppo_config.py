"""Walker2d with PPO (Schulman et al. 2017), with the paper's sizes and rates for MuJoCo.

Needs MuJoCo: ``pip install .[mujoco]``. Fujimoto et al. 2018 (table 1) give 3318 for PPO
after a million steps of version 1.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/walker2d_ppo",
    env=dict(
        env_id="Walker2d-v5",
        collector_env_num=8,
        evaluator_env_num=5,
        n_evaluator_episode=10,
        norm_obs=dict(use_norm=True),
        norm_reward=dict(use_norm=True, reward_discount=0.99),
        stop_value=6000,
    ),
    policy=dict(
        cuda=False,
        action_space="continuous",
        model=dict(
            obs_shape=17,
            action_shape=6,
            action_space="continuous",
            share_encoder=False,
            encoder_hidden_size_list=[64],
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
            activation="tanh",
        ),
        learn=dict(
            epoch_per_collect=10,
            batch_size=64,
            learning_rate=3e-4,
            # Falls to nothing over a million steps.
            lr_scheduler=dict(epoch_num=488, min_lr_lambda=0.0),
            value_weight=0.5,
            value_norm=False,
            entropy_weight=0.0,
            clip_ratio=0.2,
        ),
        collect=dict(n_sample=2048, discount_factor=0.99, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=7680)),
    ),
)

create_config = EasyDict(
    env=dict(type="mujoco"),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0, max_env_step=1000000)
