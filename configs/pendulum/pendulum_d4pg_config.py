"""D4PG (Barth-Maron et al. 2018), which has no return for Pendulum; good policies reach about
-150.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/pendulum_d4pg",
    env=dict(
        env_id="Pendulum-v1",
        collector_env_num=4,
        evaluator_env_num=10,
        n_evaluator_episode=20,
        # Of torques between -1 and 1, made what the environment takes.
        act_scale=True,
        stop_value=-200,
    ),
    policy=dict(
        cuda=False,
        priority=True,
        priority_IS_weight=True,
        nstep=3,
        random_collect_size=1000,
        model=dict(
            obs_shape=3,
            action_shape=1,
            action_space="regression",
            actor_head_hidden_size=128,
            critic_head_hidden_size=128,
            # Around the returns, discounted, that episodes can have.
            v_min=-150,
            v_max=0,
            n_atom=51,
        ),
        learn=dict(
            update_per_collect=12,
            batch_size=128,
            learning_rate_actor=0.001,
            learning_rate_critic=0.001,
            discount_factor=0.95,
        ),
        collect=dict(n_sample=12),
        eval=dict(evaluator=dict(eval_freq=600)),
        other=dict(replay_buffer=dict(replay_buffer_size=100000)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="d4pg"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
