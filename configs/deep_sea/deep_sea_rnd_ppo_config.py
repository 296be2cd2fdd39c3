"""PPO with random network distillation finds the treasure of a deep sea; 0.99 is the best return.

Measured: see docs/returns.md. Without the bonus the policy learns not to move to the right.
"""

from easydict import EasyDict

SIZE = 16

main_config = EasyDict(
    exp_name="exp/deep_sea_rnd_ppo",
    env=dict(
        size=SIZE,
        collector_env_num=8,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=0.98,
    ),
    reward_model=dict(
        type="rnd",
        intrinsic_reward_type="add",
        intrinsic_reward_weight=0.3,
        learning_rate=1e-3,
        hidden_size_list=[64, 64],
        batch_size=64,
        update_per_collect=10,
    ),
    policy=dict(
        cuda=False,
        action_space="discrete",
        model=dict(
            obs_shape=SIZE * SIZE,
            action_shape=2,
            action_space="discrete",
            encoder_hidden_size_list=[64, 64],
        ),
        learn=dict(
            epoch_per_collect=4,
            batch_size=96,
            learning_rate=1e-3,
            value_weight=0.5,
            entropy_weight=0.01,
            clip_ratio=0.2,
        ),
        collect=dict(n_sample=384, discount_factor=0.99, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = EasyDict(
    env=dict(type="deep_sea"),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_reward_model_onpolicy

    serial_pipeline_reward_model_onpolicy([main_config, create_config], seed=0)
