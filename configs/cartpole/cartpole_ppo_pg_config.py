"""PPO's surrogate (Schulman et al. 2017) with returns in place of a critic's advantages."""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_ppo_pg",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[64, 64],
        ),
        learn=dict(
            epoch_per_collect=5,
            batch_size=256,
            learning_rate=0.001,
            clip_ratio=0.2,
            adv_norm=True,
        ),
        collect=dict(n_episode=8, discount_factor=0.98),
        eval=dict(evaluator=dict(eval_freq=100)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="ppo_pg"),
    collector=dict(type="episode"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
