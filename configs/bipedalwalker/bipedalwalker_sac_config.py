"""BipedalWalker with SAC (Haarnoja et al. 2018); 300 over 100 episodes counts as solved.

Needs the extra [box2d]. Falling costs 10 in place of 100 while it learns.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/bipedalwalker_sac",
    env=dict(
        env_id="BipedalWalker-v3",
        collector_env_num=4,
        evaluator_env_num=5,
        n_evaluator_episode=5,
        stop_value=300,
        act_scale=True,
        rew_clip=True,
    ),
    policy=dict(
        cuda=False,
        random_collect_size=10000,
        model=dict(
            obs_shape=24,
            action_shape=4,
            action_space="reparameterization",
            twin_critic=True,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            update_per_collect=4,
            batch_size=256,
            learning_rate_q=3e-4,
            learning_rate_policy=3e-4,
            learning_rate_alpha=3e-4,
            target_theta=0.005,
            discount_factor=0.99,
            alpha=0.2,
            auto_alpha=True,
        ),
        collect=dict(n_sample=4),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(replay_buffer=dict(replay_buffer_size=1000000)),
    ),
)

create_config = EasyDict(
    env=dict(type="bipedalwalker"),
    env_manager=dict(type="base"),
    policy=dict(type="sac"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0, max_env_step=1000000)
