"""One of several learner processes, each with a part of one batch of each of `cases.json`.

python joint_ranks.py FOLDER RANK WORLD_SIZE
"""

import datetime
import json
import sys
from pathlib import Path
from unittest import mock

import torch

from ding.data import tree_map
from ding.utils import dist_finalize, dist_init
from tests.policy.batches import LENGTHS, SEQUENCES, build, samples

#: Samples of the first process: of sequences, and of steps.
SEQUENCES_OF_FIRST, STEPS_OF_FIRST = 1, int(LENGTHS[:2].sum())
#: What the policies have that look at all of a batch, beyond the mean of a loss.
NORMALISED = {
    "ddpg": dict(reward_batch_norm=True),
    "cql": dict(learn=dict(with_lagrange=True)),
    "bc": dict(learn=dict(tanh_mask=True)),
    "ppo": dict(learn=dict(adv_norm=True, value_norm=True, epoch_per_collect=2)),
    "ppo_offpolicy": dict(learn=dict(adv_norm=True, value_norm=True)),
    "ppg": dict(learn=dict(adv_norm=True, value_norm=True, aux_freq=1, aux_train_epoch=1)),
    "a2c": dict(learn=dict(adv_norm=True)),
    "happo": dict(learn=dict(epoch_per_collect=1)),
}


def constant(like, *args, **kwargs):
    return torch.full_like(like, 0.3)


def constants(*shape, **kwargs):
    sizes = shape[0] if isinstance(shape[0], tuple | torch.Size) else shape
    return torch.full(sizes, 0.3, device=kwargs.get("device"))


def fill(tensor, *args, **kwargs):
    return tensor.fill_(0.3)


def learned(name, kind, part=None, device="cpu"):
    """What an update from a part of the samples, or from all, brought: gradients, by optimiser and
    place, and statistics."""
    more = dict(NORMALISED.get(name, {}), multi_gpu=part is not None, cuda=device == "cuda")
    more["learn"] = {**more.get("learn", {}), "batch_size": 1000}
    policy = build(name, kind, **more)
    optimizers = {
        name: part for name, part in vars(policy).items() if isinstance(part, torch.optim.Optimizer)
    }
    for optimizer in optimizers.values():
        for group in optimizer.param_groups:
            # Adam's first steps are as long for gradients of rounding errors as for others.
            group["lr"] = 1e-7
    data = samples(policy, name, kind)
    if part is not None:
        first = SEQUENCES_OF_FIRST if name in SEQUENCES else STEPS_OF_FIRST
        own = slice(0, first) if part == 0 else slice(first, None)
        data = tree_map(lambda leaf: leaf[own], data)
    # What is drawn may not depend on the process.
    with (
        mock.patch("torch.randn_like", constant),
        mock.patch("torch.randn", constants),
        mock.patch("torch.rand", constants),
        mock.patch("torch.Tensor.uniform_", fill),
        mock.patch("torch.Tensor.normal_", fill),
        mock.patch("torch.Tensor.exponential_", fill),
    ):
        torch.manual_seed(0)
        for _ in range(2):
            policy.learn_mode.forward(dict(data))
    found = {
        f"{name}.{group}.{place}": parameter.grad
        for name, optimizer in optimizers.items()
        for group, options in enumerate(optimizer.param_groups)
        for place, parameter in enumerate(options["params"])
        if parameter.grad is not None
    }
    statistics = policy.learn_mode.state_dict().get("value_norm", {})
    return found | {name: torch.as_tensor(value) for name, value in statistics.items()}


def main(folder, rank, world_size):
    torch.set_num_threads(1)
    rank, world_size = int(rank), int(world_size)
    store = torch.distributed.FileStore(f"{folder}/store", world_size)
    limit = datetime.timedelta(seconds=60)
    dist_init("gloo", rank=rank, world_size=world_size, store=store, timeout=limit)
    cases = map(tuple, json.loads(Path(folder, "cases.json").read_text()))
    torch.save({case: learned(*case, part=rank) for case in cases}, f"{folder}/{rank}.pt")
    dist_finalize()


if __name__ == "__main__":
    main(*sys.argv[1:])
