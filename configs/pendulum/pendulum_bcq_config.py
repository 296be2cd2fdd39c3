"""Batch-constrained Q-learning on what a run of SAC has seen (Fujimoto et al. 2019).

The data: `ding -m serial -c configs/pendulum/pendulum_sac_config.py -s 0 --env-step 20000
--set env.stop_value=0`. The folder of that run is the data set; SAC learns the task within its
first 8,000 steps.

Measured: five seeds of five reach -200 over fifty episodes, after 2,000 updates; imitating all of
the same data reaches -597.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/pendulum_bcq",
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
            actor_head_hidden_size=[64, 64],
            critic_head_hidden_size=[64, 64],
            vae_hidden_dims=[64, 64],
            # Half of what was done is bad: the paper's 0.05 stays too close to it.
            phi=0.5,
        ),
        learn=dict(
            train_epoch=16,
            batch_size=100,
            # Some 30 steps ahead are enough, and sooner learned than 100.
            discount_factor=0.97,
            target_theta=0.01,
            learning_rate_q=0.003,
            learning_rate_policy=0.001,
            learning_rate_vae=0.001,
            lmbda=0.75,
        ),
        collect=dict(data_type="naive", data_path="exp/pendulum_sac"),
        eval=dict(evaluator=dict(eval_freq=1000)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="bcq"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_offline

    serial_pipeline_offline([main_config, create_config], seed=0)
