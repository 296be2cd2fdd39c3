"""Primal Wasserstein imitation learning (Dadashi et al. 2021)."""

import numpy as np

from ding.reward_model.base_reward_model import Trajectories, Transitions
from ding.reward_model.demonstrated import DemonstratedRewardModel
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.types import Config

#: Weights below this bound are rounding errors.
_NO_WEIGHT = 1e-9
#: Maximum number of unfinished episodes that are tracked.
_OPEN = 1024


@REWARD_MODEL_REGISTRY.register("pwil")
class PWILRewardModel(DemonstratedRewardModel):
    """Primal Wasserstein Imitation Learning: rewards steps that are close to unused expert steps.

    An episode's T steps have the weight 1/T each, the D steps of the expert 1/D. A step is coupled
    greedily with the nearest expert steps that have weight left (algorithm 1 of the paper); its
    cost c is the sum of weight times distance, and its reward
    ``alpha * exp(-beta * T * c / sqrt(|S| + |A|))``. Distances are between observations and actions
    divided by the expert's standard deviations. A step without remaining weight gets the reward 0.
    """

    config: Config = dict(
        type="pwil",
        # Scale and decay rate of rewards.
        alpha=5.0,
        beta=5.0,
        # Every subsample-th step of a demonstration is used, as in the paper.
        subsample=20,
        # T, the length of an episode; None: the length of the longest demonstration.
        episode_length=None,
    )
    kept = ("_atoms", "_scale", "_horizon", "_open_obs", "_open_weights")

    def build(self) -> None:
        obs, actions = self._require_obs(), self._require_actions()
        self._obs_size = int(np.prod(obs))
        size = self._obs_size + actions
        self._atoms, self._scale = np.zeros((0, size)), np.ones(size)
        self._horizon, self._mean_reward = 1, 0.0
        # For unfinished episodes of a collection: the last observation and the remaining weights.
        self._open_obs, self._open_weights = np.zeros((0, self._obs_size)), np.zeros((0, 0))

    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        points, cfg = self._points(transitions), self._cfg
        of_trajectory = np.concatenate([np.arange(length) for length in lengths])
        deviation = points.std(axis=0)
        self._scale = np.where(deviation > 0, deviation, 1.0)
        self._atoms = points[of_trajectory % cfg.subsample == 0] / self._scale
        self._horizon = int(cfg.episode_length or lengths.max())
        self._open_weights = np.zeros((0, len(self._atoms)))
        self._open_obs = np.zeros((0, self._obs_size))

    def _points(self, transitions: Transitions) -> np.ndarray:
        """Concatenated observations and actions, float64 ``[N, |S| + |A|]``."""
        steps = self._columns(transitions, "obs", "action")
        actions = self._as_input(steps["action"]).cpu().numpy()
        return np.concatenate([steps["obs"].reshape(len(actions), -1), actions], 1).astype(float)

    def rewarded(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        self._require_demonstrations(len(self._atoms))
        points = self._points(transitions) / self._scale
        ends = np.cumsum(lengths)
        obs = np.asarray(transitions["obs"]).reshape(len(points), -1)
        next_obs = np.asarray(transitions["next_obs"]).reshape(len(points), -1)
        costs, left = np.zeros(len(points)), []
        for start, end in zip(ends - lengths, ends):
            weights = self._weights(obs[start])
            for step in range(start, end):
                costs[step] = self._cost(points[step], weights)
            left.append(weights)
        unfinished = ~np.asarray(transitions["done"], bool).reshape(-1)[ends - 1]
        # Only the newest ones: truncated episodes never continue.
        left_obs, left_weights = next_obs[ends - 1][unfinished], np.stack(left)[unfinished]
        self._open_obs = np.concatenate([self._open_obs, left_obs])[-_OPEN:]
        self._open_weights = np.concatenate([self._open_weights, left_weights])[-_OPEN:]
        exponent = self._cfg.beta * self._horizon / np.sqrt(points.shape[1])
        reward = (self._cfg.alpha * np.exp(-exponent * costs)).astype(np.float32)
        self._mean_reward = float(reward.mean())
        return {**transitions, "reward": reward.reshape(np.shape(transitions["reward"]))}, lengths

    def train(self, train_iter: int = 0, envstep: int = 0) -> None:
        self._log({"reward": self._mean_reward}, train_iter, envstep)

    def _weights(self, obs: np.ndarray) -> np.ndarray:
        """Remaining weights of the episode that an observation continues, or of a new episode."""
        found = np.flatnonzero((self._open_obs == obs).all(axis=1))
        if not len(found):
            return np.full(len(self._atoms), 1 / len(self._atoms))
        weights: np.ndarray = self._open_weights[found[-1]]
        self._open_obs = np.delete(self._open_obs, found[-1], axis=0)
        self._open_weights = np.delete(self._open_weights, found[-1], axis=0)
        return weights.copy()

    def _cost(self, point: np.ndarray, weights: np.ndarray) -> float:
        """Couple a step with the nearest atoms and use up ``weights``; inf if none are left."""
        free = np.flatnonzero(weights > _NO_WEIGHT)
        distance = np.linalg.norm(self._atoms[free] - point, axis=1)
        mine, cost = 1 / self._horizon, 0.0 if len(free) else np.inf
        for nearest in np.argsort(distance, kind="stable"):
            atom = free[nearest]
            moved = min(mine, weights[atom])
            cost += moved * distance[nearest]
            weights[atom] -= moved
            mine -= moved
            if mine <= _NO_WEIGHT:
                break
        return cost
