from easydict import EasyDict

# Self-play: one policy plays both sides and learns from both. It is judged by its lead, in coins,
# over players that move at random.
main_config = EasyDict(
    exp_name="exp/coin_race_ppo",
    env=dict(
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=20,
        stop_value=4.5,
    ),
    policy=dict(
        cuda=False,
        action_space="discrete",
        model=dict(
            obs_shape=8,
            action_shape=5,
            action_space="discrete",
            encoder_hidden_size_list=[64, 64],
            actor_head_hidden_size=64,
            critic_head_hidden_size=64,
        ),
        learn=dict(
            epoch_per_collect=5,
            batch_size=256,
            learning_rate=0.001,
            value_weight=0.5,
            entropy_weight=0.01,
            clip_ratio=0.2,
        ),
        # Samples of each player.
        collect=dict(n_sample=1024, discount_factor=0.95, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = EasyDict(
    env=dict(type="coin_race"),
    env_manager=dict(type="base"),
    policy=dict(type="ppo"),
    collector=dict(type="sample_1v1"),
    evaluator=dict(type="battle_interaction", opponent="random"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
