"""Behaviour cloning of a SAC that swings the pendulum up, with continuous actions.

The demonstrator, and 6,000 of its steps:
`ding -m serial -c configs/pendulum/pendulum_sac_config.py -s 0`
`python configs/pendulum/pendulum_bc_config.py collect`
Then, to learn from them: `ding -m serial_bc -c configs/pendulum/pendulum_bc_config.py -s 0`.

Of a demonstrator that returned -150, three seeds reached -137 to -185 over 20 episodes, after 1,000
to 1,500 updates.
"""

import sys

from easydict import EasyDict

EXPERT = "exp/pendulum_sac"

main_config = EasyDict(
    exp_name="exp/pendulum_bc",
    env=dict(
        env_id="Pendulum-v1",
        collector_env_num=1,
        evaluator_env_num=10,
        n_evaluator_episode=20,
        # Of torques between -1 and 1, made what the environment takes.
        act_scale=True,
        stop_value=-200,
    ),
    policy=dict(
        cuda=False,
        continuous=True,
        loss_type="mse_loss",
        model=dict(
            obs_shape=3,
            action_shape=1,
            action_space="regression",
            actor_head_hidden_size=128,
        ),
        learn=dict(
            train_epoch=60,
            batch_size=64,
            learning_rate=1e-3,
            optimizer="Adam",
            weight_decay=0.0,
            # The rate falls to a tenth after 40 epochs.
            lr_decay=True,
            warmup_epoch=0,
            decay_epoch=40,
        ),
        collect=dict(data_type="naive", data_path="exp/pendulum_demo.pkl"),
        eval=dict(evaluator=dict(eval_freq=500)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="bc"),
)

if __name__ == "__main__":
    from ding.entry import collect_demo_data, serial_pipeline_bc

    if sys.argv[1:] == ["collect"]:
        collect_demo_data(
            f"{EXPERT}/formatted_total_config.py",
            seed=0,
            collect_count=6000,
            expert_data_path=main_config.policy.collect.data_path,
            state_dict_path=f"{EXPERT}/ckpt/ckpt_best.pth.tar",
        )
    else:
        serial_pipeline_bc([main_config, create_config], seed=0)
