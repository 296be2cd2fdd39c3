"""QTRAN (Son et al. 2019): the best return, 8, of the paper's matrix game (table 1).

There VDN and QMIX miss it.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/matrix_game_qtran",
    env=dict(
        game="nonmonotonic",
        collector_env_num=8,
        evaluator_env_num=1,
        n_evaluator_episode=1,
        stop_value=8,
    ),
    policy=dict(
        cuda=False,
        model=dict(
            agent_num=2,
            obs_shape=3,
            global_obs_shape=1,
            action_shape=3,
            # Half as wide, the joint value of some seeds stays a sum of what each agent does, which
            # is a plateau of its error, and with it the agents' actions miss the best pair.
            hidden_size_list=[64, 64],
            embedding_size=64,
            lstm_type="gru",
        ),
        learn=dict(
            update_per_collect=4,
            batch_size=64,
            learning_rate=0.003,
            target_update_theta=0.02,
            discount_factor=0.99,
            double_q=True,
            td_weight=1,
            opt_weight=1,
            nopt_min_weight=1,
        ),
        # Sequences: an episode has one step.
        collect=dict(n_sample=32, unroll_len=1),
        eval=dict(evaluator=dict(eval_freq=100)),
        other=dict(
            # All joint actions are tried equally often, whatever agents believe: as in the paper.
            eps=dict(type="linear", start=1, end=1, decay=10000),
            replay_buffer=dict(replay_buffer_size=1000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="matrix_game"),
    env_manager=dict(type="base"),
    policy=dict(type="qtran"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
