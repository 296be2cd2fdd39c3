"""Guided cost learning (Finn et al. 2016) with PPO, from a bundled PPO policy.

`ding -m serial_guided_cost -c configs/cartpole/cartpole_guided_cost_config.py -s 0`. CartPole-v1
counts as solved at a mean return of 475; the environment's rewards are not used.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_guided_cost",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    reward_model=dict(
        type="guided_cost",
        hidden_size=64,
        batch_size=64,
        learning_rate=1e-3,
        update_per_collect=50,
        collect_count=2000,
        expert_model_path="zoo:cartpole_ppo",
    ),
    policy=dict(
        cuda=False,
        action_space="discrete",
        model=dict(
            obs_shape=4,
            action_shape=2,
            action_space="discrete",
            encoder_hidden_size_list=[64, 64],
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            epoch_per_collect=10,
            batch_size=128,
            learning_rate=0.001,
            value_weight=0.5,
            entropy_weight=0.01,
            clip_ratio=0.2,
        ),
        collect=dict(n_sample=1024, discount_factor=0.99, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=80)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    reward_model=dict(type="guided_cost"),
    policy=dict(type="ppo"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_guided_cost

    serial_pipeline_guided_cost([main_config, create_config], seed=0)
