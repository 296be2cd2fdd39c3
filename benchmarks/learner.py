"""Learning and acting with DQN side by side: this project and a hand-written loop.

    python benchmarks/learner.py

CartPole's shapes, network 4-128-128-64-2 (dueling), double DQN, batch 64, one thread. Both sides
take turns in one process, round by round. Printed are medians per second, and the ratio of medians
with the least and the greatest ratio of a single round.
"""

import argparse
import copy
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from easydict import EasyDict
from torch import nn

from ding.data import Columns
from ding.policy import DQNPolicy
from ding.utils import deep_merge_dicts

GAMMA, TARGET_FREQ, BATCH, ENVS, EPS = 0.97, 100, 64, 8, 0.1


class Network(nn.Module):
    """The dueling network as one writes it down."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU()),
            *(nn.Linear(128, 64), nn.ReLU()),
        )
        self.advantage = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.value = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        feature = self.encoder(x)
        advantage = self.advantage(feature)
        return self.value(feature) + advantage - advantage.mean(-1, keepdim=True)


class HandWritten:
    """The floor: nothing but the algorithm, with torch's fused Adam."""

    def __init__(self, batches: list[Columns]) -> None:
        self.net = Network()
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3, fused=True)
        self.batches = [self._unpack(batch.collated()) for batch in batches]
        self.updates = 0

    @staticmethod
    def _unpack(batch: dict) -> tuple[torch.Tensor, ...]:
        reward, done = batch["reward"][:, 0].contiguous(), batch["done"].float()
        return batch["obs"], batch["next_obs"], batch["action"][:, None], reward, done

    def update(self) -> None:
        obs, next_obs, action, reward, done = self.batches[self.updates % len(self.batches)]
        q = self.net(obs).gather(1, action).squeeze(1)
        with torch.no_grad():
            best = self.net(next_obs).argmax(1, keepdim=True)
            next_q = self.target(next_obs).gather(1, best).squeeze(1)
            target = reward + GAMMA * (1 - done) * next_q
        loss = ((q - target) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % TARGET_FREQ == 0:
            self.target.load_state_dict(self.net.state_dict())
        loss.item()

    def act(self, obs: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            action = self.net(torch.from_numpy(obs)).argmax(1).numpy()
        explore = np.random.rand(len(obs)) < EPS
        return np.where(explore, np.random.randint(0, 2, len(obs)), action)


class Ours:
    """The policy's modes, as a learner and a collector call them."""

    def __init__(self, batches: list[Columns]) -> None:
        cfg = EasyDict(
            discount_factor=GAMMA,
            model=dict(obs_shape=4, action_shape=2),
            learn=dict(target_update_freq=TARGET_FREQ),
        )
        policy = DQNPolicy(deep_merge_dicts(DQNPolicy.default_config(), cfg))
        self.learn = policy.learn_mode.forward
        self.forward = policy.collect_mode.batched.forward
        self.batches = batches
        self.updates = 0

    def update(self) -> None:
        self.learn(self.batches[self.updates % len(self.batches)])
        self.updates += 1

    def act(self, obs: np.ndarray) -> np.ndarray:
        return np.asarray(self.forward(obs, eps=EPS)["action"])


def make_batches(count: int) -> list[Columns]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))

    return [
        Columns(
            {
                "obs": normal(BATCH, 4),
                "next_obs": normal(BATCH, 4),
                "action": torch.from_numpy(rng.integers(0, 2, BATCH)),
                "reward": normal(BATCH, 1),
                "done": rng.random(BATCH) < 0.05,
                "collect_iter": np.zeros(BATCH, np.int64),
            }
        )
        for _ in range(count)
    ]


def rate(call: Callable[[], object], seconds: float) -> float:
    """Calls per second."""
    count, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        for _ in range(10):
            call()
        count += 10
    return count / elapsed


def compare(title: str, ours: Callable, floor: Callable, rounds: int, seconds: float) -> None:
    rates = [(rate(floor, seconds), rate(ours, seconds)) for _ in range(rounds + 1)][1:]
    low, high = (median(side) for side in zip(*rates))
    ratios = [b / a for a, b in rates]
    print(
        f"{title:<24} hand-written {low:8.0f}/s   ding {high:8.0f}/s   "
        f"ratio {high / low:.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each side in a round")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batches = make_batches(50)
    ours, floor = Ours(batches), HandWritten(batches)
    obs = np.random.default_rng(1).standard_normal((ENVS, 4)).astype(np.float32)
    compare("DQN updates", ours.update, floor.update, args.rounds, args.seconds)
    compare(
        f"acting, {ENVS} envs",
        lambda: ours.act(obs),
        lambda: floor.act(obs),
        args.rounds,
        args.seconds,
    )


if __name__ == "__main__":
    main()
