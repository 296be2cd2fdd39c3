"""DQfD (Hester et al. 2018); CartPole-v1 counts as solved at a mean return of 475.

The expert is what `cartpole_dqn_475_config.py` has trained: run that first. Measured with a
linear controller as the expert: 475 after 5,160 collected env steps (seed 0).
"""

import os

from easydict import EasyDict

main_config = EasyDict(
    exp_name="exp/cartpole_dqfd",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=8,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        priority=True,
        priority_IS_weight=True,
        discount_factor=0.99,
        nstep=5,
        model=dict(
            obs_shape=4,
            action_shape=2,
            encoder_hidden_size_list=[128, 128, 64],
            dueling=True,
        ),
        learn=dict(
            update_per_collect=32,
            batch_size=64,
            learning_rate=0.001,
            target_update_freq=128,
            lambda1=1.0,
            lambda2=1.0,
            lambda3=1e-5,
            margin_function=0.8,
            per_train_iter_k=512,
            expert_replay_buffer_size=1000,
        ),
        collect=dict(n_sample=64, model_path="exp/cartpole_dqn_475/ckpt/ckpt_best.pth.tar"),
        eval=dict(evaluator=dict(eval_freq=256)),
        other=dict(
            eps=dict(type="exp", start=0.1, end=0.02, decay=1000),
            replay_buffer=dict(replay_buffer_size=20000),
        ),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="dqfd"),
)

if __name__ == "__main__":
    from ding.entry import serial_pipeline_dqfd

    expert_config = os.path.join(os.path.dirname(__file__), "cartpole_dqn_475_config.py")
    serial_pipeline_dqfd([main_config, create_config], expert_config, seed=0)
