"""A learner process of several: prints its address, serves until its input ends.

python ddp_learner.py FOLDER RANK
"""

import os
import sys

import torch
from easydict import EasyDict

from ding.worker.learner.comm.base_comm_learner import create_comm_learner


def main(folder, rank):
    torch.set_num_threads(1)
    cfg = dict(
        type="flask_fs",
        name=f"learner{rank}",
        host=f"127.0.0.{int(rank) + 1}",
        port=int(os.environ.get("TEST_PORT", "0")),
        path_data=os.path.join(folder, "data"),
        path_policy=os.path.join(folder, "policy"),
        exp_name=os.path.join(folder, "exp"),
        multi_gpu=True,
        heartbeat_span=0.2,
    )
    learner = create_comm_learner(EasyDict(cfg))
    torch.manual_seed(int(os.environ.get("TEST_SEED", "0")))
    learner.start()
    print("ADDRESS", learner.address, flush=True)
    for line in sys.stdin:
        state = learner.task.learner.policy.state_dict()
        torch.save(state["model"], line.strip())
        print("DUMPED", flush=True)
    learner.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
