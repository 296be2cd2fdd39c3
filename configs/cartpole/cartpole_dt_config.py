"""A decision transformer (Chen et al. 2021) from what good and bad policies did.

`python configs/cartpole/cartpole_dt_config.py` saves 20,000 steps of a bundled DQN,
at four degrees of exploration, and trains on them. With the data there:
`ding -m serial_dt -c configs/cartpole/cartpole_dt_config.py -s 0`. CartPole-v1 counts as solved at
a mean return of 475.
"""

import os

from easydict import EasyDict

DATA = "exp/cartpole_mixed.pkl"

main_config = EasyDict(
    exp_name="exp/cartpole_dt",
    env=dict(
        env_id="CartPole-v1",
        collector_env_num=1,
        evaluator_env_num=10,
        n_evaluator_episode=10,
        stop_value=475,
    ),
    policy=dict(
        cuda=False,
        rtg_target=500,
        rtg_scale=500,
        warmup_steps=200,
        model=dict(
            state_dim=4, act_dim=2, n_blocks=2, h_dim=64, context_len=10, n_heads=2, drop_p=0.1
        ),
        learn=dict(batch_size=64, learning_rate=1e-3, train_epoch=20),
        collect=dict(data_type="naive", data_path=DATA),
        eval=dict(evaluator=dict(eval_freq=200)),
    ),
)

create_config = EasyDict(
    env=dict(type="gymnasium"),
    env_manager=dict(type="base"),
    policy=dict(type="dt"),
)


def collect() -> None:
    """Save the data set: a quarter each at ε of 0, 0.2, 0.5 and 1."""
    from ding.config import read_config
    from ding.entry import collect_demo_data
    from ding.entry.trained_policy import find_trained
    from ding.utils import read_file, save_file

    expert, rows = find_trained("zoo:cartpole_dqn"), []
    for number, eps in enumerate((0.0, 0.2, 0.5, 1.0)):
        main, create = read_config(expert.config)
        main["policy"].setdefault("other", {})["eps"] = {"collect": eps}
        collect_demo_data(
            (main, create),
            seed=number,
            collect_count=5000,
            expert_data_path=f"{DATA}.part",
            state_dict_path=expert.weights,
        )
        rows += read_file(f"{DATA}.part")
    save_file(DATA, rows)
    os.remove(f"{DATA}.part")


if __name__ == "__main__":
    from ding.entry import serial_pipeline_dt

    if not os.path.exists(DATA):
        collect()
    serial_pipeline_dt([main_config, create_config], seed=0)
