"""Synchronous advantage actor-critic (Mnih et al. 2016); the RL Zoo of Stable-Baselines3 has 500
after 500,000 steps. Thirteen seeds of thirteen reach 475, after 12,800 to 64,000.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_a2c",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        model=dict(
            obs_shape=4,
            action_shape=2,
            # A separate network: the values' gradients are far larger.
            share_encoder=False,
            encoder_hidden_size_list=[64, 64],
        ),
        learn=dict(
            batch_size=64,
            learning_rate=0.0007,
            value_weight=0.5,
            entropy_weight=0.0,
            adv_norm=True,
            grad_norm=100,
        ),
        collect=dict(n_sample=256, discount_factor=0.99, gae_lambda=1.0),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="a2c"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
