"""SQIL (Reddy et al. 2019) from the steps of a bundled PPO policy.

`ding -m serial_sqil -c configs/cartpole/cartpole_sqil_config.py -s 0`. CartPole-v1 counts as solved
at a mean return of 475; the environment's rewards are not used.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_sqil",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        discount_factor=0.99,
        nstep=1,
        expert_random_collect_size=2000,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[64, 64]),
        learn=dict(
            update_per_collect=8,
            batch_size=128,
            learning_rate=0.001,
            target_update_freq=100,
            alpha=0.1,
        ),
        collect=dict(n_sample=64, model_path="zoo:cartpole_ppo"),
        eval=dict(evaluator=dict(eval_freq=100)),
        other=dict(
            eps=dict(type="exp", start=0.1, end=0.02, decay=1000),
            replay_buffer=dict(replay_buffer_size=20000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="sql"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_sqil

    serial_pipeline_sqil([main_config, create_config], seed=0)
