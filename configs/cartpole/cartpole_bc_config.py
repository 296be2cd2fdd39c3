"""Behaviour cloning of a DQN that holds the pole.

The demonstrator, and 5,000 of its steps:
`ding -m serial -c configs/cartpole/cartpole_dqn_475_config.py -s 0`
`python configs/cartpole/cartpole_bc_config.py collect`
Then, to learn from them: `ding -m serial_bc -c configs/cartpole/cartpole_bc_config.py -s 0`.

CartPole-v1 counts as solved at a mean return of 475 (Gymnasium's `reward_threshold`). Of a
demonstrator that returned 482 in its last evaluation, five seeds each reached 475 or more over 20
episodes, after 400 to 600 updates.
"""

import sys

from easydict import EasyDict

EXPERT = "exp/cartpole_dqn_475"

main_config = EasyDict(
    exp_name="exp/cartpole_bc",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=1,
        evaluator_env_num=10,
        n_evaluator_episode=20,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        continuous=False,
        model=dict(obs_shape=4, action_shape=2, encoder_hidden_size_list=[64, 64]),
        learn=dict(
            train_epoch=40,
            batch_size=64,
            learning_rate=1e-3,
            optimizer="Adam",
            weight_decay=0.0,
            show_accuracy=True,
        ),
        collect=dict(data_type="naive", data_path="exp/cartpole_demo.pkl"),
        eval=dict(evaluator=dict(eval_freq=200)),
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
            collect_count=5000,
            expert_data_path=main_config.policy.collect.data_path,
            state_dict_path=f"{EXPERT}/ckpt/ckpt_best.pth.tar",
        )
    else:
        serial_pipeline_bc([main_config, create_config], seed=0)
