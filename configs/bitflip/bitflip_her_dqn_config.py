"""DQN with hindsight experience replay flips eight bits; without it almost no episode succeeds.

Measured: see docs/returns.md.
"""

from easydict import EasyDict

N_BITS = 8

main_config = EasyDict(
    exp_name="exp/bitflip_her_dqn",
    env=dict(
        n_bits=N_BITS,
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=50,
        stop_value=0.95,
    ),
    reward_model=dict(
        type="her",
        her_strategy="future",
        her_replay_k=4,
    ),
    policy=dict(
        cuda=False,
        nstep=1,
        discount_factor=0.95,
        model=dict(
            obs_shape=2 * N_BITS,
            action_shape=N_BITS,
            encoder_hidden_size_list=[128, 128],
            dueling=True,
        ),
        learn=dict(
            update_per_collect=10,
            batch_size=128,
            learning_rate=0.001,
            target_update_freq=100,
        ),
        collect=dict(n_episode=8, collector=dict(get_train_sample=True)),
        eval=dict(evaluator=dict(eval_freq=500)),
        other=dict(
            eps=dict(type="exp", start=0.9, end=0.1, decay=10000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="bitflip"),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_reward_model_offpolicy

    serial_pipeline_reward_model_offpolicy([main_config, create_config], seed=0)
