from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_discrete_sac",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        random_collect_size=1000,
        model=dict(
            obs_shape=4,
            action_shape=2,
            twin_critic=True,
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            update_per_collect=64,
            batch_size=64,
            learning_rate_q=0.001,
            learning_rate_policy=0.001,
            learning_rate_alpha=0.001,
            # Of 0.69 nats at most: with the default of 0.68 the policy is nearly random, and one
            # seed of five never held the pole for long.
            target_entropy=0.3,
        ),
        collect=dict(n_sample=64),
        eval=dict(evaluator=dict(eval_freq=512)),
        other=dict(replay_buffer=dict(replay_buffer_size=50000)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="discrete_sac"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
