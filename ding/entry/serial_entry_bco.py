"""Behavioural cloning from observation, in one process."""

import numpy as np
import torch
from easydict import EasyDict
from torch.nn import functional as F

from ding.config.complete import Strict
from ding.data import Columns
from ding.entry.components import Components, InputConfig
from ding.entry.expert import ExpertPipeline, bare
from ding.entry.run.serial import SerialRun
from ding.entry.utils import random_collect
from ding.policy import Policy
from ding.reward_model.base_reward_model import BaseRewardModel, RecentSteps, Transitions, shapes_of
from ding.utils import deep_merge_dicts
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import ConfigError
from ding.utils.settings import EnvSetting
from ding.utils.types import Config, Tree


def serial_pipeline_bco(
    input_cfg: InputConfig,
    expert_cfg: InputConfig | None = None,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    expert_model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Clone an expert from its observations only (Torabi et al. 2018).

    The policy's own steps, at first ``policy.collect.n_sample / bco.alpha`` random ones, train an
    inverse dynamics model, which predicts the action between two observations. In each round it
    labels the expert's observations, and the policy, a behaviour cloning one, learns from these for
    ``policy.learn.train_epoch`` epochs.

    Args:
        input_cfg: The policy's config; the section ``bco`` is for the model. The expert's
            checkpoint is ``policy.collect.model_path``, and it plays
            ``policy.expert_random_collect_size`` steps; a file ``policy.collect.data_path``
            replaces it, of which ``obs`` and ``next_obs`` are read.

    The other arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline_dqfd`.
    """
    pipeline = ObservationPipeline(input_cfg, seed, env_setting, model, strict)
    pipeline.find_expert(expert_cfg, expert_model)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


class ObservationPipeline(ExpertPipeline):
    """Clones an expert from its observations."""

    mode, columns, replays = "serial_bco", ("obs", "next_obs"), False
    _demonstrations: Columns

    def settle(self) -> None:
        if self.cfg.policy.type.removesuffix("_command") != "bc":
            raise ConfigError(
                f"policy.type is {self.cfg.policy.type!r}; serial_pipeline_bco trains 'bc'"
            )
        own = dict(self.cfg.get("bco") or {})
        self.cfg.bco = EasyDict(deep_merge_dicts(InverseDynamics.config, own))
        if not 0 < self.cfg.bco.alpha <= 1:
            raise ConfigError(f"bco.alpha is {self.cfg.bco.alpha}; expected 0 < alpha <= 1")

    def outfit(self, parts: Components) -> None:
        super().outfit(parts)
        policy = parts.policy
        shapes = shapes_of(parts.collector_env)
        writer = parts.learner.tb_logger
        parts.reward_model = InverseDynamics(self.cfg.bco, shapes, policy._device, writer)
        parts.collector.on_trajectories = parts.reward_model.collected

        def observations(columns: dict[str, Tree], lengths: np.ndarray) -> dict[str, Tree]:
            return {name: columns[name] for name in self.columns}

        if isinstance(self.expert, Columns):
            self._demonstrations = self.expert
        else:
            mode = bare(policy.collect_mode)
            self._demonstrations = self.play(self.expert, mode, self.count, observations)

    def prepare(self, parts: Components) -> None:
        cfg = self.cfg.policy
        count = cfg.collect.get("n_sample") or cfg.collect.n_episode
        first = EasyDict(cfg, random_collect_size=round(count / self.cfg.bco.alpha))
        random_collect(
            *(first, parts.policy, parts.collector, parts.collector_env, parts.commander), _Unkept()
        )

    def round(self, parts: Components, run: SerialRun) -> None:
        """Collect, train the inverse dynamics, and clone its labels of the observations."""
        run.collect(parts.commander.step())
        known = self._demonstrations.columns
        model = parts.reward_model
        assert isinstance(model, InverseDynamics)
        labelled = Columns({"obs": known["obs"], "action": model.label(**known)})
        learn = self.cfg.policy.learn
        for _ in range(learn.get("train_epoch") or 1):
            order = np.random.permutation(len(labelled))
            for start in range(0, len(order), learn.batch_size):
                run.learn(labelled.take(order[start : start + learn.batch_size]))


class InverseDynamics(BaseRewardModel):
    """Learns from the policy's own steps which action leads from one observation to the next.

    It does not change rewards; `label` predicts the actions for an expert's observations.
    """

    config: Config = dict(
        learn=dict(
            idm_batch_size=64,
            idm_learning_rate=1e-3,
            idm_weight_decay=0.0,
            # Number of passes over all own steps after each collection.
            idm_train_epoch=10,
        ),
        # The environments determine the kind of actions; `action_space` is ignored.
        model=dict(idm_encoder_hidden_size_list=[64, 64], action_space=None),
        # Own steps of a round, as a fraction of the steps before the first one.
        alpha=0.2,
    )

    def build(self) -> None:
        shapes, learn = self._shapes, self._cfg.learn
        if not isinstance(shapes.obs_shape, int) or shapes.action_shape is None:
            raise ConfigError(
                "serial_pipeline_bco needs observations that are vectors, and one choice or one "
                f"vector as action; the environments have {shapes}"
            )
        layers: list[torch.nn.Module] = []
        width = 2 * shapes.obs_shape
        for size in self._cfg.model.idm_encoder_hidden_size_list:
            layers += [torch.nn.Linear(width, size), torch.nn.ReLU()]
            width = size
        self._network = torch.nn.Sequential(*layers, torch.nn.Linear(width, shapes.action_shape))
        self._optimize(
            self._network, lr=learn.idm_learning_rate, weight_decay=learn.idm_weight_decay
        )
        self._steps = self.networks["steps"] = RecentSteps()

    def observe(self, transitions: Transitions, lengths: np.ndarray) -> None:
        self._steps.add(self._columns(transitions, "obs", "next_obs", "action"))

    def train(self, train_iter: int = 0, envstep: int = 0) -> None:
        learn, losses = self._cfg.learn, []
        batches = -(-len(self._steps) // learn.idm_batch_size)
        for _ in range(learn.idm_train_epoch * batches):
            steps = self._steps.sample(learn.idm_batch_size)
            predicted = self._predict(steps["obs"], steps["next_obs"])
            losses.append(self._descend(self._loss(predicted, steps["action"])))
        if losses:
            self._log({"loss": losses}, train_iter, envstep)

    def _loss(self, predicted: torch.Tensor, action: np.ndarray) -> torch.Tensor:
        """Cross-entropy for choices, squared error for vectors."""
        wanted = self._tensor(action)
        if self._shapes.discrete:
            return F.cross_entropy(predicted, wanted.long().reshape(-1))
        return F.mse_loss(torch.tanh(predicted), wanted.reshape(predicted.shape))

    def _predict(self, obs: Tree, next_obs: Tree) -> torch.Tensor:
        seen = torch.cat([self._tensor(obs), self._tensor(next_obs)], 1)
        found: torch.Tensor = self._network(seen)
        return found

    def label(self, obs: Tree, next_obs: Tree) -> np.ndarray:
        """The most probable actions: int64 ``[N, 1]``, or float32 ``[N, A]`` in (-1, 1)."""
        with torch.no_grad():
            predicted = self._predict(obs, next_obs)
            if self._shapes.discrete:
                return predicted.argmax(-1, keepdim=True).cpu().numpy()
            return torch.tanh(predicted).cpu().numpy()


class _Unkept:
    """Accepts samples without storing them: only the inverse dynamics model learns from them."""

    def push(self, data: object, cur_collector_envstep: int = -1) -> None:
        pass
