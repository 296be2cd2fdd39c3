"""LunarLanderContinuous with SAC (Haarnoja et al. 2018); 200 counts as solved.

Needs the extra [box2d].
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/lunarlander_cont_sac",
    env=dict(
        env_id="LunarLanderContinuous-v3",
        collector_env_num=4,
        evaluator_env_num=5,
        n_evaluator_episode=10,
        stop_value=200,
        act_scale=True,
    ),
    policy=dict(
        cuda=False,
        random_collect_size=5000,
        model=dict(
            obs_shape=8,
            action_shape=2,
            action_space="reparameterization",
            twin_critic=True,
            actor_head_hidden_size=128,
            critic_head_hidden_size=128,
        ),
        learn=dict(
            update_per_collect=4,
            batch_size=128,
            learning_rate_q=1e-3,
            learning_rate_policy=1e-3,
            learning_rate_alpha=3e-4,
            target_theta=0.005,
            discount_factor=0.99,
            alpha=0.2,
            auto_alpha=True,
        ),
        collect=dict(n_sample=4),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(replay_buffer=dict(replay_buffer_size=500000)),
    ),
)

create_config = EasyDict(
    env=dict(type="lunarlander"),
    env_manager=dict(type="base"),
    policy=dict(type="sac"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0, max_env_step=500000)
