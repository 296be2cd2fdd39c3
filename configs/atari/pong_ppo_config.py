"""Pong with PPO (Schulman et al. 2017), with the sizes and rates of the paper's Atari runs.

Needs the extra [atari]. PPO plays 20.7 in the paper, after 40 million frames.
"""

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/pong_ppo",
    env=dict(
        env_id="PongNoFrameskip-v4",
        frame_stack=4,
        collector_env_num=8,
        evaluator_env_num=4,
        n_evaluator_episode=8,
        stop_value=20,
    ),
    policy=dict(
        cuda=False,
        action_space="discrete",
        model=dict(
            obs_shape=[4, 84, 84],
            action_shape=6,
            action_space="discrete",
            encoder_hidden_size_list=[32, 64, 64, 512],
            actor_head_hidden_size=512,
            critic_head_hidden_size=512,
        ),
        learn=dict(
            epoch_per_collect=3,
            batch_size=256,
            learning_rate=0.00025,
            value_weight=1.0,
            entropy_weight=0.01,
            clip_ratio=0.1,
            adv_norm=True,
            grad_clip_type="clip_norm",
            grad_clip_value=0.5,
        ),
        collect=dict(n_sample=1024, discount_factor=0.99, gae_lambda=0.95),
        eval=dict(evaluator=dict(eval_freq=600)),
    ),
)

create_config = EasyDict(
    env=dict(type="atari"),
    env_manager=dict(type="subprocess"),
    policy=dict(type="ppo"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_onpolicy

    serial_pipeline_onpolicy([main_config, create_config], seed=0)
