from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_impala_parallel",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        collector_episode_num=2,
        evaluator_env_num=5,
        n_evaluator_episode=5,
        stop_value=195,
    ),
    policy=dict(
        cuda=False,
        # Transitions of a sample; what is counted below are samples.
        unroll_len=16,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[64, 64],
            share_encoder=False,
        ),
        learn=dict(
            batch_size=16,
            learning_rate=0.0003,
            value_weight=1.0,
            entropy_weight=0.1,
            discount_factor=0.95,
            grad_clip_type="clip_norm",
            clip_value=5,
            learner=dict(learner_num=1, send_policy_freq=10),
        ),
        collect=dict(
            n_sample=8,
            collector=dict(collector_num=2, update_policy_second=0.2),
        ),
        other=dict(
            # Of policies that were not long ago.
            replay_buffer=dict(replay_buffer_size=128),
            commander=dict(collector_task_space=2, learner_task_space=1, eval_interval=5),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="impala_command"),
    learner=dict(type="base"),
    collector=dict(type="zergling"),
    commander=dict(type="solo"),
    comm_learner=dict(type="flask_fs"),
    comm_collector=dict(type="flask_fs"),
)

system_config = EasyDict(
    coordinator=dict(),
    path_data="./exp/cartpole_impala_parallel/data",
    path_policy="./exp/cartpole_impala_parallel/policy",
    communication_mode="auto",
    learner_gpu_num=1,
)

if __name__ == "__main__":
    from ding.entry import parallel_pipeline

    parallel_pipeline((main_config, create_config, system_config), seed=0)
