"""Rewards learned from ranked trajectories: T-REX and D-REX (Brown et al. 2019, 2020)."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ding.reward_model.base_reward_model import Trajectories, Transitions
from ding.reward_model.demonstrated import DemonstratedRewardModel, RewardNetwork
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.errors import DataError
from ding.utils.types import Config


@REWARD_MODEL_REGISTRY.register("trex")
class TrexRewardModel(DemonstratedRewardModel):
    """T-REX: learns rewards from ranked trajectories; better ones get higher returns.

    Trained once, on pairs of snippets of two trajectories with different returns, by the
    cross-entropy of which is better, given the sums of their predicted rewards. The better
    trajectory's snippet starts no earlier. The policy's reward is the sigmoid of the prediction.
    """

    config: Config = dict(
        type="trex",
        # Hidden layers of the observation's reward; a last size of 1 is the output.
        hidden_size_list=[64, 64],
        min_snippet_length=5,
        max_snippet_length=100,
        # Number of snippet pairs per pass, and number of passes.
        num_snippets=2000,
        update_per_collect=1,
        # Range of checkpoints of the expert's run that play, by their updates.
        checkpoint_min=0,
        checkpoint_max=None,
        checkpoint_step=None,
        # Fractions of random actions, for experts with a single checkpoint.
        eps_list=[0.0, 0.25, 0.5, 1.0],
        # Old locations of data_path, and ignored keys of scripts.
        offline_data_path=None,
        exp_name=None,
        num_trajs=None,
        num_trajs_per_bin=None,
        bc_path=None,
        bc_iterations=None,
    )
    columns = ("obs", "action", "next_obs", "done", "reward")

    ranks, entry = True, "serial_pipeline_trex"
    kept = ("_is_trained",)

    def build(self) -> None:
        sizes = list(self._cfg.hidden_size_list)
        sizes = sizes[:-1] if sizes[-1] == 1 else sizes
        self._network = RewardNetwork(self._require_obs(), sizes)
        self._optimize(self._network, lr=self._cfg.learning_rate)
        self._is_trained = False

    @property
    def has_learned(self) -> bool:
        return self._is_trained

    def demonstrate(self, transitions: Transitions, lengths: np.ndarray) -> None:
        """Train on ranked trajectories."""
        cfg, starts = self._cfg, np.cumsum(lengths) - lengths
        levels = self._levels(transitions, starts)
        kept = lengths >= cfg.min_snippet_length
        starts, lengths, levels = starts[kept], lengths[kept], levels[kept]
        if len(np.unique(levels)) < 2:
            raise DataError(
                f"reward_model.type={cfg.type!r} got {len(levels)} trajectories of at least "
                f"min_snippet_length={cfg.min_snippet_length} steps, none better than another: "
                "demonstrations of different returns are needed"
            )
        obs = self._tensor(self._columns(transitions, "obs")["obs"])
        losses, right = [], []
        count = max(1, cfg.num_snippets * cfg.update_per_collect // cfg.batch_size)
        for step in range(1, count + 1):
            sums = [self._sums(obs, one) for one in self._snippets(starts, lengths, levels)]
            # Minus log of the better one's probability, exp(better) / (exp(worse) + exp(better)).
            losses.append(self._descend(F.softplus(sums[0] - sums[1]).mean()))
            right.append(float((sums[1] > sums[0]).float().mean()))
            if step % 10 == 0 or step == count:
                self._log({"loss": losses, "accuracy": right}, step, 0)
                losses, right = [], []
        self._is_trained = True

    def _levels(self, transitions: Transitions, starts: np.ndarray) -> np.ndarray:
        """The ranking criterion of trajectories: their returns."""
        reward = np.asarray(transitions["reward"], np.float64).reshape(len(transitions["obs"]))
        return np.add.reduceat(reward, starts)

    def _snippets(
        self, starts: np.ndarray, lengths: np.ndarray, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """A batch of pairs: indices of the transitions of worse and better snippets, [B, L]."""
        cfg, size = self._cfg, self._cfg.batch_size
        one, two = np.random.randint(0, len(levels), (2, size))
        same = levels[one] == levels[two]
        while same.any():
            two[same] = np.random.randint(0, len(levels), int(same.sum()))
            same = levels[one] == levels[two]
        is_worse = levels[one] < levels[two]
        worse, better = np.where(is_worse, one, two), np.where(is_worse, two, one)
        longest = min(int(lengths[one].min()), int(lengths[two].min()), cfg.max_snippet_length)
        length = np.random.randint(cfg.min_snippet_length, longest + 1)
        shared = np.minimum(lengths[worse], lengths[better]) - length
        first = (np.random.random(size) * (shared + 1)).astype(np.int64)
        room = lengths[better] - length - first
        second = first + (np.random.random(size) * (room + 1)).astype(np.int64)
        steps = np.arange(length)
        return starts[worse][:, None] + first[:, None] + steps, (
            starts[better][:, None] + second[:, None] + steps
        )

    def _sums(self, obs: Tensor, index: np.ndarray) -> Tensor:
        """Predicted returns of snippets, ``[B]``."""
        return self._network(obs[torch.as_tensor(index.reshape(-1))]).view(index.shape).sum(1)

    def rewarded(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        self._require_demonstrations(self._is_trained)
        obs = self._tensor(self._columns(transitions, "obs")["obs"])
        with torch.no_grad():
            reward = torch.sigmoid(self._network(obs)).cpu().numpy()
        return {**transitions, "reward": reward.reshape(np.shape(transitions["reward"]))}, lengths


@REWARD_MODEL_REGISTRY.register("drex")
class DrexRewardModel(TrexRewardModel):
    """D-REX: T-REX with trajectories ranked by the noise added to the demonstrator.

    It uses no rewards. The noise is added to the expert itself, not to a clone of it.
    """

    config: Config = dict(type="drex")
    columns = ("obs", "action", "next_obs", "done", "noise")

    def _levels(self, transitions: Transitions, starts: np.ndarray) -> np.ndarray:
        return -np.asarray(transitions["noise"], np.float64).reshape(-1)[starts]
