"""Pong with DQN (Mnih et al. 2015), whose hyper-parameters these are but for a smaller buffer.

Needs the extra [atari]. DQN plays 18.9 in the paper, after 50 million frames; 20 and more is common
after 10 million.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/pong_dqn",
    env=dict(
        env_id="PongNoFrameskip-v4",
        frame_stack=4,
        collector_env_num=8,
        evaluator_env_num=4,
        n_evaluator_episode=8,
        stop_value=20,
    ),
    policy=dict(
        cuda=False,
        priority=False,
        nstep=3,
        discount_factor=0.99,
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            encoder_hidden_size_list=[32, 64, 64, 512],
        ),
        learn=dict(
            update_per_collect=10,
            batch_size=32,
            learning_rate=0.0001,
            target_update_freq=500,
        ),
        collect=dict(n_sample=96),
        eval=dict(evaluator=dict(eval_freq=4000)),
        other=dict(
            eps=dict(type="exp", start=1.0, end=0.05, decay=250000),
            replay_buffer=dict(replay_buffer_size=100000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="dqn"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
