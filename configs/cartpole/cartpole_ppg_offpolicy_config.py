"""Phasic policy gradient (Cobbe et al. 2020) from replay buffers."""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_ppg_offpolicy",
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
            update_per_collect=20,
            batch_size=64,
            learning_rate=0.001,
            entropy_weight=0.01,
            adv_norm=True,
            aux_freq=50,
            aux_train_epoch=2,
        ),
        collect=dict(n_sample=160, discount_factor=0.98, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=500)),
        # Of the policies of the last two collections: older ones say little of this one.
        other=dict(
            replay_buffer=dict(
                multi_buffer=True,
                policy=dict(replay_buffer_size=320),
                value=dict(replay_buffer_size=320),
            )
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="ppg_offpolicy"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
