"""Replay buffers of this project and of its peers under one interface."""

import tempfile

import numpy as np

CAPACITY = {"cartpole": 100_000, "atari": 10_000}
ALPHA, BETA = 0.6, 0.4


def transitions(kind, n, seed=0):
    """Columns of n transitions of one trajectory."""
    rng = np.random.default_rng(seed)
    if kind == "cartpole":
        frames = rng.standard_normal((n + 1, 4)).astype(np.float32)
    else:
        frames = rng.integers(0, 255, (n + 1, 4, 84, 84), dtype=np.uint8)
    return {
        "obs": frames[:-1].copy(),
        "next_obs": frames[1:].copy(),
        "action": rng.integers(0, 2, n),
        "reward": rng.standard_normal((n, 1)).astype(np.float32),
        "done": rng.random(n) < 0.01,
    }


class Side:
    """One buffer: `push`, `sample`, and with priorities `sample` and `update`.

    Args:
        kind: ``cartpole`` or ``atari``.
        prioritised: Whether to draw by priority.
    """

    def __init__(self, kind, prioritised):
        self.kind, self.capacity = kind, CAPACITY[kind]
        self.build(transitions(kind, 1), prioritised)

    def prepare(self, columns):
        """What `push` takes, made beforehand."""
        return columns

    def build(self, sample, prioritised):
        raise NotImplementedError

    def push(self, prepared):
        raise NotImplementedError

    def sample(self, size):
        raise NotImplementedError

    def update(self, batch, priorities):
        raise NotImplementedError


class Floor(Side):
    """Hand-written numpy columns: the limit. No priorities, and the output is reused."""

    def build(self, sample, prioritised):
        if prioritised:
            raise NotImplementedError
        self.columns = {
            k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in sample.items()
        }
        self.head = self.count = 0
        self.rng = np.random.default_rng(0)
        self.out = {}

    def push(self, prepared):
        n = len(prepared["action"])
        if self.head + n > self.capacity:
            self.head = 0
        for name, column in self.columns.items():
            column[self.head : self.head + n] = prepared[name]
        self.head += n
        self.count = max(self.count, self.head)

    def sample(self, size):
        if size not in self.out:
            self.out[size] = {
                k: np.empty((size, *v.shape[1:]), v.dtype) for k, v in self.columns.items()
            }
        index, out = self.rng.integers(0, self.count, size), self.out[size]
        for name, column in self.columns.items():
            column.take(index, 0, out[name], "clip")
        return out


class Ding(Side):
    """This project's buffers, columns in and out."""

    def build(self, sample, prioritised):
        from easydict import EasyDict

        from ding.worker import AdvancedReplayBuffer, NaiveReplayBuffer

        cls = AdvancedReplayBuffer if self.always_advanced or prioritised else NaiveReplayBuffer
        self.buffer = cls(EasyDict(replay_buffer_size=self.capacity))

    always_advanced = False

    def prepare(self, columns):
        import torch

        from ding.data import Columns

        tensors = {k: v if k == "done" else torch.from_numpy(v) for k, v in columns.items()}
        return Columns({**tensors, "collect_iter": np.zeros(len(columns["done"]), np.int64)})

    def push(self, prepared):
        self.buffer.push(prepared, 0)

    def sample(self, size):
        return self.buffer.sample(size, 1)

    def update(self, batch, priorities):
        columns = batch.columns
        self.buffer.update(
            {
                "replay_unique_id": columns["replay_unique_id"],
                "replay_buffer_idx": columns["replay_buffer_idx"],
                "priority": priorities,
            }
        )


class DingAdvanced(Ding):
    """The default buffer of the pipelines, also where no priorities are used."""

    always_advanced = True


class DingRows(DingAdvanced):
    """Lists of dicts in; out comes a dict of batched tensors, as policies make it."""

    def prepare(self, columns):
        rows = list(super().prepare(columns))
        return rows if len(rows) > 1 else rows[0]

    def sample(self, size):
        from ding.utils.data import default_collate

        return default_collate(self.buffer.sample(size, 1))


class DingDicts(Ding):
    """Single dicts of arrays in: what SB3's `add` gets."""

    def prepare(self, columns):
        if len(columns["done"]) > 1:
            return super().prepare(columns)
        return {name: column[0] for name, column in columns.items()}


class Cpprb(Side):
    def build(self, sample, prioritised):
        import cpprb

        env = {k: {"shape": v.shape[1:] or 1, "dtype": v.dtype} for k, v in sample.items()}
        cls = cpprb.PrioritizedReplayBuffer if prioritised else cpprb.ReplayBuffer
        more = {"alpha": ALPHA} if prioritised else {}
        self.buffer = cls(self.capacity, env, **more)
        self.more = {"beta": BETA} if prioritised else {}

    def push(self, prepared):
        self.buffer.add(**prepared)

    def sample(self, size):
        return self.buffer.sample(size, **self.more)

    def update(self, batch, priorities):
        self.buffer.update_priorities(batch["indexes"], priorities)


class StableBaselines3(Side):
    def build(self, sample, prioritised):
        if prioritised:
            raise NotImplementedError
        from gymnasium.spaces import Box, Discrete
        from stable_baselines3.common.buffers import ReplayBuffer

        obs = sample["obs"]
        low, high = (-np.inf, np.inf) if obs.dtype == np.float32 else (0, 255)
        space = Box(low, high, obs.shape[1:], obs.dtype)
        self.buffer = ReplayBuffer(self.capacity, space, Discrete(2), "cpu")

    def prepare(self, columns):
        if len(columns["action"]) > 1:
            raise NotImplementedError  # takes one step at a time
        c = columns
        return c["obs"], c["next_obs"], c["action"], c["reward"][0], c["done"], [{}]

    def push(self, prepared):
        self.buffer.add(*prepared)

    def sample(self, size):
        return self.buffer.sample(size)


class Tianshou(Side):
    def build(self, sample, prioritised):
        from tianshou.data import PrioritizedReplayBuffer, ReplayBuffer

        if prioritised:
            self.buffer = PrioritizedReplayBuffer(self.capacity, alpha=ALPHA, beta=BETA)
        else:
            self.buffer = ReplayBuffer(self.capacity)

    def prepare(self, columns):
        from tianshou.data import Batch

        c = {k: v[0] for k, v in columns.items()}
        if len(columns["action"]) > 1:
            raise NotImplementedError  # takes one step of each environment at a time
        return Batch(
            obs=c["obs"], obs_next=c["next_obs"], act=c["action"], rew=float(c["reward"][0]),
            terminated=c["done"], truncated=False, info={},
        )  # fmt: skip

    def push(self, prepared):
        self.buffer.add(prepared)

    def sample(self, size):
        return self.buffer.sample(size)

    def update(self, batch, priorities):
        self.buffer.update_weight(batch[1], priorities)


class TorchRL(Side):
    def build(self, sample, prioritised):
        from torchrl.data import (
            LazyTensorStorage,
            TensorDictPrioritizedReplayBuffer,
            TensorDictReplayBuffer,
        )

        cls = TensorDictPrioritizedReplayBuffer if prioritised else TensorDictReplayBuffer
        more = {"alpha": ALPHA, "beta": BETA} if prioritised else {}
        self.buffer = cls(storage=LazyTensorStorage(self.capacity), **more)

    def prepare(self, columns):
        import torch
        from tensordict import TensorDict

        tensors = {k: torch.from_numpy(v) for k, v in columns.items()}
        return TensorDict(tensors, batch_size=[len(columns["action"])])

    def push(self, prepared):
        self.buffer.extend(prepared)

    def sample(self, size):
        return self.buffer.sample(size)

    def update(self, batch, priorities):
        self.buffer.update_priority(batch["index"], priorities)


class DIEngine(Side):
    """DI-engine's default buffer, with the collate that its policies do."""

    def build(self, sample, prioritised):
        from ding.utils.data import default_collate
        from ding.worker import AdvancedReplayBuffer

        cfg = AdvancedReplayBuffer.default_config()
        cfg.replay_buffer_size = self.capacity
        folder = tempfile.mkdtemp()
        self.buffer, self.collate = AdvancedReplayBuffer(cfg, exp_name=folder), default_collate

    def prepare(self, columns):
        import torch

        rows = [
            {
                "obs": torch.from_numpy(o), "next_obs": torch.from_numpy(n),
                "action": torch.tensor(a), "reward": torch.from_numpy(r), "done": bool(d),
                "collect_iter": 0,
            }
            for o, n, a, r, d in zip(*columns.values())
        ]  # fmt: skip
        return rows if len(rows) > 1 else rows[0]

    def push(self, prepared):
        # It writes into the dicts that it keeps: each has to be a separate object.
        single = isinstance(prepared, dict)
        self.buffer.push(dict(prepared) if single else [dict(row) for row in prepared], 0)

    def sample(self, size):
        rows = self.buffer.sample(size, 1)
        return rows, self.collate(rows)

    def update(self, batch, priorities):
        keys = ("replay_unique_id", "replay_buffer_idx")
        info = {key: [row[key] for row in batch[0]] for key in keys}
        self.buffer.update({**info, "priority": priorities.tolist()})


SIDES = {
    "ding": Ding,
    "advanced": DingAdvanced,
    "rows": DingRows,
    "dicts": DingDicts,
    "floor": Floor,
    "cpprb": Cpprb,
    "sb3": StableBaselines3,
    "tianshou": Tianshou,
    "torchrl": TorchRL,
    "di-engine": DIEngine,
}


def fill(side):
    """Push until the buffer is full, or long enough where that would take minutes."""
    step = 64
    try:
        batches = [side.prepare(transitions(side.kind, step, seed)) for seed in range(4)]
    except NotImplementedError:
        step = 1
        batches = [side.prepare(transitions(side.kind, 1, seed)) for seed in range(4)]
    for i in range(min(side.capacity, 20_000 * step) // step):
        side.push(batches[i % 4])


def work(name, case):
    """What does one case with one side, for `_timing.serve`; it counts items."""

    def build():
        try:
            import torch

            torch.set_num_threads(1)
        except ImportError:
            pass
        kind, verb, size = case.split("/")
        side, size = SIDES[name](kind, verb.startswith("per_")), int(size)
        fill(side)
        if verb.startswith("per_"):
            priorities = np.random.default_rng(0).random(512) + 0.1
            side.update(side.sample(512), priorities)
        if verb.endswith("push"):
            prepared = side.prepare(transitions(kind, size))
            return repeated(lambda: side.push(prepared), size)
        if verb.endswith("sample"):
            return repeated(lambda: side.sample(size), size)
        batch = side.sample(size)
        priorities = np.random.default_rng(0).random(size) + 0.1
        return repeated(lambda: side.update(batch, priorities), size)

    return build


def repeated(act, size):
    def piece():
        for _ in range(20):
            act()
        return 20 * size

    return piece
