"""One of several processes of a serial training.

python ranks.py FOLDER RANK WORLD_SIZE
"""

import datetime
import os
import sys

import torch

from ding.entry import serial_pipeline
from ding.utils import dist_finalize, dist_init
from ding.utils.callbacks import RunCallback


class Ending(RunCallback):
    """Ends the run after its second collection, if the folder asks for that."""

    def __init__(self, folder, rank):
        self.folder, self.rank = folder, rank

    def on_collect(self, event):
        with open(f"{self.folder}/told_by_{self.rank}", "a") as file:
            print(event.train_iter, file=file)
        return os.path.exists(f"{self.folder}/end_early") and event.train_iter > 0


def main(folder, rank, world_size):
    torch.set_num_threads(1)
    rank, world_size = int(rank), int(world_size)
    store = torch.distributed.FileStore(os.path.join(folder, "store"), world_size)
    limit = datetime.timedelta(seconds=60)
    dist_init("gloo", rank=rank, world_size=world_size, store=store, timeout=limit)
    main_config = dict(
        exp_name=os.path.join(folder, "run"),
        env=dict(
            env_id="Pendulum-v1",
            act_scale=True,
            collector_env_num=2,
            evaluator_env_num=1,
            n_evaluator_episode=1,
        ),
        policy=dict(
            random_collect_size=32,
            model=dict(obs_shape=3, action_shape=1, twin_critic=True),
            learn=dict(multi_gpu=True, update_per_collect=2, batch_size=16),
            collect=dict(n_sample=16),
        ),
    )
    create_config = dict(
        env=dict(type="gymnasium"), env_manager=dict(type="base"), policy=dict(type="sac")
    )
    # Each process has its own environments.
    policy = serial_pipeline(
        (main_config, create_config),
        seed=rank,
        max_train_iter=20 if os.path.exists(f"{folder}/end_early") else 4,
        callbacks=[Ending(folder, rank)],
    )
    state = policy.learn_mode.state_dict()
    torch.save({"alpha": state["alpha"], **state["model"]}, f"{folder}/{rank}.pt")
    dist_finalize()


if __name__ == "__main__":
    main(*sys.argv[1:])
