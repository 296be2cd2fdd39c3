from easydict import EasyDict

# Needs the extra [box2d].
main_config = EasyDict(
    exp_name="exp/lunarlander_dqn",
    env=dict(
        env_id="LunarLander-v3",
        collector_env_num=8,
        evaluator_env_num=16,
        n_evaluator_episode=16,
        stop_value=200,
    ),
    policy=dict(
        cuda=False,
        discount_factor=0.99,
        nstep=3,
        model=dict(
            obs_shape=8,
            action_shape=4,
            encoder_hidden_size_list=[128, 128, 64],
            dueling=True,
        ),
        learn=dict(
            update_per_collect=10,
            batch_size=64,
            learning_rate=0.001,
            target_update_freq=100,
        ),
        collect=dict(n_sample=64),
        eval=dict(evaluator=dict(eval_freq=2000)),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.1, decay=50000),
            replay_buffer=dict(replay_buffer_size=100000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="dqn"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline

    serial_pipeline([main_config, create_config], seed=0)
