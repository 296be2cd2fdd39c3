"""REINFORCE (Williams 1992), with returns normalised over each batch of episodes."""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_pg",
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
            # One update of each collection.
            batch_size=4096,
            learning_rate=0.005,
            entropy_weight=0.0,
            adv_norm=True,
        ),
        collect=dict(n_episode=8, discount_factor=0.95),
        eval=dict(evaluator=dict(eval_freq=10)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="pg"),
    collector=dict(type="episode"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
