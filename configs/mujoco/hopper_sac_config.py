"""Hopper with SAC (Haarnoja et al. 2018), with the rates and the fixed temperature of tianshou's
benchmark, which has 3,061 [1,709 .. 3,392] after 200,000 steps (Hopper-v3, ten seeds).

Needs MuJoCo: ``pip install .[mujoco]``.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/hopper_sac",
    env=dict(
        env_id="Hopper-v5",
        collector_env_num=1,
        evaluator_env_num=5,
        n_evaluator_episode=5,
        stop_value=4000,
    ),
    policy=dict(
        cuda=False,
        random_collect_size=10000,
        model=dict(
            obs_shape=11,
            action_shape=3,
            action_space="reparameterization",
            twin_critic=True,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            update_per_collect=1,
            batch_size=256,
            learning_rate_q=1e-3,
            learning_rate_policy=1e-3,
            target_theta=0.005,
            discount_factor=0.99,
            alpha=0.2,
            auto_alpha=False,
        ),
        collect=dict(n_sample=1),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    ),
)

create_config = EasyDict(
    env=dict(type="mujoco"),
    env_manager=dict(type="base"),
    policy=dict(type="sac"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0, max_env_step=1000000)
