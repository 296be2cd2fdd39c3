"""One of several learner processes: trains policies on separate data, reports their weights.

python ranks.py FOLDER RANK WORLD_SIZE
"""

import datetime
import sys

import numpy as np
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.policy import DQNPolicy, PPOPolicy, SACPolicy
from ding.utils import deep_merge_dicts, dist_finalize, dist_init

POLICIES = {"dqn": DQNPolicy, "ppo": PPOPolicy, "sac": SACPolicy}


def samples(kind, rng, n=32):
    continuous = kind == "sac"
    action = rng.uniform(-1, 1, (n, 2)) if continuous else rng.integers(0, 2, n)
    columns = {
        "obs": rng.normal(size=(n, 3)).astype(np.float32),
        "next_obs": rng.normal(size=(n, 3)).astype(np.float32),
        "action": action.astype(np.float32) if continuous else action,
        "reward": rng.normal(size=(n, 1)).astype(np.float32),
        "done": rng.random(n) < 0.1,
    }
    if kind == "ppo":
        columns |= {"logit": np.zeros((n, 2), np.float32), "value": np.zeros(n, np.float32)}
        columns |= {"adv": rng.normal(size=n).astype(np.float32)}
    return Columns(columns)


def train(kind, bp_update_sync, rank):
    """The weights after some updates, and where messages were sent from: in the backward pass, or
    after it."""
    cls = POLICIES[kind]
    own = EasyDict(
        multi_gpu=True,
        bp_update_sync=bp_update_sync,
        model=dict(obs_shape=3, action_shape=2),
    )
    if kind == "ppo":
        own.recompute_adv, own.learn = False, dict(epoch_per_collect=1, batch_size=16)
    torch.manual_seed(0)
    policy = cls(deep_merge_dicts(cls.default_config(), own), enable_field=["learn"])
    sent, waiting = set(), []
    all_reduce, sync = torch.distributed.all_reduce, policy.sync_gradients

    def noted(tensor, *args, **kwargs):
        if tensor.numel() > 100:  # no count or mean
            sent.add("after" if waiting else "during")
        return all_reduce(tensor, *args, **kwargs)

    def synced(model):
        waiting.append(True)
        sync(model)
        waiting.clear()

    torch.distributed.all_reduce, policy.sync_gradients = noted, synced
    rng = np.random.default_rng(rank)
    for _ in range(3):
        policy.learn_mode.forward(samples(kind, rng))
    torch.distributed.all_reduce = all_reduce
    state = policy.learn_mode.state_dict()
    return {**state["model"], **{name: state[name] for name in ("alpha",) if name in state}}, sent


def main(folder, rank, world_size):
    torch.set_num_threads(1)
    rank, world_size = int(rank), int(world_size)
    store = torch.distributed.FileStore(f"{folder}/store", world_size)
    limit = datetime.timedelta(seconds=60)
    dist_init("gloo", rank=rank, world_size=world_size, store=store, timeout=limit)
    results = {(kind, sync): train(kind, sync, rank) for kind in POLICIES for sync in (True, False)}
    torch.save(results, f"{folder}/{rank}.pt")
    dist_finalize()


if __name__ == "__main__":
    main(*sys.argv[1:])
