"""Conservative Q-learning on what a run of SAC has seen (Kumar et al. 2020).

The data: `ding -m serial -c configs/pendulum/pendulum_sac_config.py -s 0 --env-step 10000
--set env.stop_value=0`. The folder of that run is the data set; SAC learns the task within its
first 8,000 steps.

Measured: five of five seeds reach a mean return of -200 over 50 episodes, after 3,000 or 4,000
updates; imitating all of the same data reaches -794. Of 10,000 steps SAC itself gets -165.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/pendulum_cql",
    env=dict(
        env_id="Pendulum-v1",
        collector_env_num=1,
        evaluator_env_num=10,
        # Of ten starts the best policy returns -120 to -203, of fifty about -150.
        n_evaluator_episode=50,
        # Of torques between -1 and 1, made what the environment takes.
        act_scale=True,
        stop_value=-200,
    ),
    policy=dict(
        cuda=False,
        model=dict(
            obs_shape=3,
            action_shape=1,
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            train_epoch=68,
            batch_size=128,
            learning_rate_q=0.003,
            learning_rate_policy=0.001,
            learning_rate_alpha=0.0003,
            num_actions=4,
            min_q_weight=1.0,
        ),
        collect=dict(data_type="naive", data_path="exp/pendulum_sac"),
        eval=dict(evaluator=dict(eval_freq=1000)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="cql"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_offline

    serial_pipeline_offline([main_config, create_config], seed=0)
