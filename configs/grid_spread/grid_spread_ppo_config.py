"""PPO of several agents (Yu et al. 2022, MAPPO), which share an actor and a critic that sees all.

The task is this package's own: 0.80 is the mean return of agents that go straight to the landmarks.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/grid_spread_ppo",
    env=dict(
        agent_num=2,
        size=4,
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=50,
        stop_value=0.72,
    ),
    policy=dict(
        cuda=False,
        multi_agent=True,
        action_space="discrete",
        model=dict(
            agent_num=2,
            agent_obs_shape=8,
            global_obs_shape=8,
            action_shape=5,
            action_space="discrete",
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            epoch_per_collect=10,
            batch_size=64,
            learning_rate=0.003,
            value_weight=0.5,
            entropy_weight=0.03,
            clip_ratio=0.2,
        ),
        collect=dict(n_sample=1024, discount_factor=0.95, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = EasyDict(
    env=dict(type="grid_spread"),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
