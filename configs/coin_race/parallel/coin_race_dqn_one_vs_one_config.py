from easydict import EasyDict

# One policy learns from games against itself and against its own past. It is judged by its lead, in
# coins, over a player that moves at random.
main_config = EasyDict(
    exp_name="exp/coin_race_dqn_one_vs_one",
    env=dict(
        size=5,
        collector_env_num=8,
        collector_episode_num=2,
        evaluator_env_num=10,
        n_evaluator_episode=20,
        stop_value=4.5,
    ),
    policy=dict(
        cuda=False,
        discount_factor=0.9,
        nstep=3,
        model=dict(
            obs_shape=8,
            action_shape=5,
            encoder_hidden_size_list=[128, 64],
            dueling=True,
        ),
        learn=dict(
            batch_size=128,
            learning_rate=0.001,
            learner=dict(learner_num=1, send_policy_freq=10),
        ),
        collect=dict(
            n_sample=32,
            collector=dict(collector_num=2, update_policy_second=0.5),
        ),
        other=dict(
            eps=dict(type="exp", start=0.95, end=0.1, decay=10000),
            replay_buffer=dict(replay_buffer_size=50000),
            commander=dict(
                collector_task_space=2,
                learner_task_space=1,
                eval_interval=5,
                league=dict(
                    naive_sp_player=dict(
                        one_phase_step=1000,
                        branch_probs=dict(pfsp=0.5, sp=0.5),
                        strong_win_rate=0.7,
                        eval_opponent_difficulty=["random"],
                    ),
                ),
            ),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="coin_race"),
    env_manager=dict(type="base"),
    policy=dict(type="dqn_command"),
    learner=dict(type="base"),
    collector=dict(type="marine"),
    commander=dict(type="one_vs_one"),
    # Of `ding -m eval`.
    evaluator=dict(type="battle_interaction", opponent="random"),
    comm_learner=dict(type="flask_fs"),
    comm_collector=dict(type="flask_fs"),
)

system_config = EasyDict(
    coordinator=dict(),
    path_data="./exp/coin_race_dqn_one_vs_one/data",
    path_policy="./exp/coin_race_dqn_one_vs_one/policy",
    communication_mode="auto",
    learner_gpu_num=1,
)

if __name__ == "__main__":
    from ding.entry import parallel_pipeline

    parallel_pipeline((main_config, create_config, system_config), seed=0)
