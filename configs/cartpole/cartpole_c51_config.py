from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_c51",
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
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[128, 128, 64],
            # Returns beyond 100 need not be distinguished to choose the better action.
            v_min=0,
            v_max=100,
            n_atom=51,
        ),
        # Long phases of learning from what one policy saw are steadier than a step now and then.
        learn=dict(
            update_per_collect=128,
            batch_size=64,
            learning_rate=0.001,
            target_update_freq=128,
        ),
        collect=dict(n_sample=256),
        eval=dict(evaluator=dict(eval_freq=512)),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.04, decay=4000),
            replay_buffer=dict(replay_buffer_size=50000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="c51"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
