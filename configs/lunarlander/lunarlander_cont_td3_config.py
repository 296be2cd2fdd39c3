"""LunarLanderContinuous with TD3 (Fujimoto et al. 2018); 200 counts as solved.

Needs the extra [box2d].
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/lunarlander_cont_td3",
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
        random_collect_size=10000,
        model=dict(
            obs_shape=8,
            action_shape=2,
            action_space="regression",
            twin_critic=True,
            actor_head_hidden_size=256,
            critic_head_hidden_size=256,
        ),
        learn=dict(
            update_per_collect=4,
            batch_size=256,
            learning_rate_actor=1e-3,
            learning_rate_critic=1e-3,
            target_theta=0.005,
            discount_factor=0.99,
        ),
        collect=dict(n_sample=4, noise_sigma=0.1),
        eval=dict(evaluator=dict(eval_freq=5000)),
        other=dict(replay_buffer=dict(replay_buffer_size=500000)),
    ),
)

create_config = EasyDict(
    env=dict(type="lunarlander"),
    env_manager=dict(type="base"),
    policy=dict(type="td3"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0, max_env_step=500000)
