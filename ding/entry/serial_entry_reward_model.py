"""Training with a reward model, in one process; some models learn from demonstrations."""

import argparse
import logging
import os
from typing import Any

import numpy as np
import torch

from ding.config.complete import Strict
from ding.data import Columns
from ding.data.dataset import offline_data_save_type
from ding.data.offline.trajectories import in_trajectories
from ding.entry.components import Components, InputConfig
from ding.entry.expert import ExpertPipeline, bare, load_expert, read_transitions
from ding.policy import Policy, create_policy
from ding.reward_model.demonstrated import DemonstratedRewardModel
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.callbacks import GivenCallbacks
from ding.utils.errors import ConfigError
from ding.utils.settings import EnvSetting
from ding.utils.types import Tree
from ding.worker.collector.steps import Mode

#: Experts that play demonstrations: the path of each, and its share of random actions.
Players = list[tuple[str, float]]
#: Name of the file of demonstrations where configs name a folder.
_FILE = "demonstrations.pkl"


def serial_pipeline_reward_model_offpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy from a replay buffer, with the rewards of the config's ``reward_model``.

    Arguments, return value and errors are those of `ding.entry.serial_pipeline`.
    """
    pipeline = RewardModelPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


def serial_pipeline_reward_model_onpolicy(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy on each new collection, with the rewards of the config's ``reward_model``.

    Arguments, return value and errors are those of `ding.entry.serial_pipeline`.
    """
    pipeline = OnPolicyRewardModelPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


def serial_pipeline_gail(
    input_cfg: InputConfig,
    expert_cfg: InputConfig | None = None,
    seed: int = 0,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    collect_data: bool = True,
    env_setting: EnvSetting | None = None,
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy by a discriminator's rewards, against an expert (Ho and Ermon 2016).

    The policy may be on-policy or off-policy; the environments' rewards are not used.

    Args:
        input_cfg: Config of the trained policy, with ``reward_model.type='gail'``.
        expert_cfg: Config of the expert with the checkpoint ``reward_model.expert_model_path`` (or
            ``policy.collect.model_path``); by default that of the run to which the checkpoint
            belongs.
        collect_data: Let the expert play ``reward_model.collect_count`` steps, and save them as
            ``reward_model.data_path`` if that is set. If False, or if there is no expert, they
            are read from that file.

    The other arguments, the return value and the errors are those of
    `ding.entry.serial_pipeline`.

    Raises:
        DataError: The file's transitions lack a column, contain NaN, or do not fit the policy.
    """
    pipeline = GailPipeline(input_cfg, seed, env_setting, model, strict)
    pipeline.plays = collect_data
    pipeline.find_expert(expert_cfg)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


def serial_pipeline_guided_cost(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    expert_model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy by a cost that is learned from an expert's steps (Finn et al. 2016).

    As `serial_pipeline_gail` with ``reward_model.type='guided_cost'``, for policies whose samples
    contain the probabilities of their actions.
    """
    pipeline = GuidedCostPipeline(input_cfg, seed, env_setting, model, strict)
    pipeline.find_expert(model=expert_model)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


def serial_pipeline_trex(
    input_cfg: InputConfig,
    seed: int = 0,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    max_train_iter: int | None = int(1e10),
    max_env_step: int | None = int(1e10),
    strict: Strict = False,
    callbacks: GivenCallbacks = None,
) -> Policy:
    """Train a policy by rewards that are learned from ranked trajectories (Brown et al. 2019).

    The trajectories are read from ``reward_model.data_path``, a file of `trex_collecting_data`;
    without the file they are played in the same way. With ``reward_model.type='drex'`` they are
    ranked by the noise added to the expert (Brown et al. 2020).

    The arguments, the return value and the errors are those of `serial_pipeline_gail`.
    """
    pipeline = TrexPipeline(input_cfg, seed, env_setting, model, strict)
    return pipeline.train(max_train_iter, max_env_step, callbacks=callbacks)[0]


#: The policy determines whether training is off-policy or on-policy.
serial_pipeline_trex_onpolicy = serial_pipeline_preference_based_irl = serial_pipeline_trex


def trex_collecting_data(args: Any = None) -> None:
    """Save the trajectories that `serial_pipeline_trex` learns from.

    ``reward_model.expert_model_path`` is the folder of a run. Its checkpoints of the updates
    ``checkpoint_min`` to ``checkpoint_max``, in steps of ``checkpoint_step``, play, as far as they
    exist. Without ``checkpoint_max``, or with fewer than two checkpoints, one expert plays with
    each fraction in ``eps_list`` of random actions. The total number of steps is
    ``collect_count``.

    Args:
        args: An object with ``cfg``, a config or the path of its file, and ``seed``; by default
            they are read from the command line, as ``--cfg`` and ``--seed``.
    """
    if args is None:
        parser = argparse.ArgumentParser(description="Save ranked trajectories for T-REX.")
        parser.add_argument("--cfg", required=True, help="Config file.")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--device", help="Not read: policy.cuda counts.")
        args = parser.parse_args()
    pipeline = TrexPipeline(args.cfg, getattr(args, "seed", 0))
    path = pipeline.data_path
    if path is None:
        raise ConfigError("reward_model.data_path is missing: the file to save trajectories in")
    policy = create_policy(pipeline.cfg.policy, enable_field=["learn", "collect"])
    data = pipeline.ranked(pipeline.players(), policy)
    _save(data, path)
    print(f"saved {len(data)} transitions to {os.path.abspath(path)}")


class RewardModelPipeline(ExpertPipeline):
    """Trains with a reward model, and passes it demonstrations before the first round if it needs
    them. If `on_policy` is None, the policy decides between on-policy and off-policy.

    Attributes:
        types: Types of the supported reward models; empty: all.
    """

    mode = "serial_reward_model"
    types: tuple[str, ...] = ()
    #: Whether an expert plays, instead of reading a file.
    plays = True

    def settle(self) -> None:
        if not self.cfg.get("reward_model"):
            known = ", ".join(self.types or sorted(REWARD_MODEL_REGISTRY.query()))
            raise ConfigError(f"missing section reward_model: its type is one of {known}")
        type_ = self.cfg.reward_model.get("type")
        if self.types and type_ not in self.types:
            raise ConfigError(
                f"reward_model.type is {type_!r}; this pipeline is for {' and '.join(self.types)}"
            )
        if self.on_policy is None and self.cfg.policy.on_policy:
            self.mode = f"{self.mode}_onpolicy"

    @property
    def data_path(self) -> str | None:
        """The file of demonstrations, if the config names one."""
        model = self.cfg.reward_model
        path = model.get("data_path") or model.get("offline_data_path")
        if not path or os.path.splitext(path)[1]:
            return path or None
        return os.path.join(path, _FILE)

    def found(
        self, expert_cfg: InputConfig | None, model: torch.nn.Module | None
    ) -> Columns | Mode | Players:
        path, file = self._expert_path, self.data_path
        kind = self._kind
        is_saved = bool(kind.ranks and file and os.path.exists(file))
        if not is_saved and self.plays and (path or model is not None):
            if not kind.ranks:
                return self._load_expert(path, expert_cfg, model)
            players = self.players()
            self._load_expert(players[0][0])  # before the run begins: it may raise
            return players
        if not file:
            raise ConfigError(
                "no demonstrations: set reward_model.expert_model_path, such as "
                "'zoo:cartpole_ppo', or reward_model.data_path"
            )
        return read_transitions(file, "reward_model.data_path", self.cfg, kind.columns)

    @property
    def _kind(self) -> Any:
        """The reward model's class; for custom types the object that builds it."""
        return REWARD_MODEL_REGISTRY.get(self.cfg.reward_model.type)

    @property
    def _expert_path(self) -> str | None:
        path = self.cfg.reward_model.get("expert_model_path")
        return path or self.cfg.policy.collect.get("model_path")

    def _load_expert(
        self,
        path: str | None,
        expert_cfg: InputConfig | None = None,
        model: torch.nn.Module | None = None,
    ) -> Mode:
        key, seed, usual = "reward_model.expert_model_path", self.cfg.seed, self.input_cfg
        return load_expert(path, key, expert_cfg, seed, self.env_setting, model, usual)

    def outfit(self, parts: Components) -> None:
        if isinstance(self._kind, type) and issubclass(self._kind, DemonstratedRewardModel):
            super().outfit(parts)
        if self._expert_path and not self.plays:
            parts.mode = ""  # a command would make the expert play

    def prepare(self, parts: Components) -> None:
        if self.expert is not None:
            model = parts.reward_model
            assert isinstance(model, DemonstratedRewardModel)
            # One that was trained once is part of states and checkpoints.
            if not (self.cfg.policy.learn.get("resume_training") and model.has_learned):
                model.demonstrate(*in_trajectories(self._demonstrations(parts.policy)))
        super().prepare(parts)

    def _demonstrations(self, policy: Policy) -> Columns:
        """What was read of a file, or what the expert plays now; ranked ones are not saved."""
        if isinstance(self.expert, Columns):
            return self.expert
        if self._kind.ranks:
            return self.ranked(self.expert, policy)
        data = self._transitions(self.expert, policy, self.cfg.reward_model.collect_count)
        if self.data_path:
            _save(data, self.data_path)
        return data

    def _transitions(self, expert: Mode, policy: Policy, count: int, noise: float = 0.0) -> Columns:
        """Transitions of an expert that plays with a fraction of random actions."""

        def transitions(columns: dict[str, Tree], lengths: np.ndarray) -> dict[str, Tree]:
            found = {name: columns[name] for name in ("obs", "action", "next_obs", "done")}
            shares = np.full((len(columns["reward"]), 1), noise, np.float32)
            return {**found, "reward": columns["reward"][:, None], "noise": shares}

        return self.play(expert, bare(policy.collect_mode), count, transitions, noise)

    def players(self) -> Players:
        """Several checkpoints of an expert, or one with several shares of noise."""
        cfg, path = self.cfg.reward_model, self._expert_path
        if not path:
            raise ConfigError(
                "no demonstrations: set reward_model.expert_model_path, or reward_model.data_path"
            )
        players: Players = [(path, float(eps)) for eps in cfg.eps_list]
        if cfg.checkpoint_max is not None and os.path.isdir(path):
            updates = range(cfg.checkpoint_min, cfg.checkpoint_max + 1, cfg.checkpoint_step or 100)
            folder = os.path.join(path, "ckpt") if "ckpt" in os.listdir(path) else path
            files = [os.path.join(folder, f"iteration_{n}.pth.tar") for n in updates]
            saved = [file for file in files if os.path.exists(file)]
            if len(saved) > 1:
                players = [(file, 0.0) for file in saved]
            else:
                logging.getLogger("ding").warning(
                    "%s has %d of the checkpoints of the updates %s: the expert plays with the "
                    "shares reward_model.eps_list of random actions in their place",
                    *(folder, len(saved), [*updates]),
                )
        return players

    def ranked(self, players: Players, policy: Policy) -> Columns:
        """Trajectories of the players, one after the other."""
        count = max(1, self.cfg.reward_model.collect_count // len(players))
        return Columns.concat(
            [
                self._transitions(self._load_expert(one), policy, count, noise)
                for one, noise in players
            ]
        )


class OnPolicyRewardModelPipeline(RewardModelPipeline):
    """Trains on-policy with a reward model."""

    mode, on_policy = "serial_reward_model_onpolicy", True


class GailPipeline(RewardModelPipeline):
    """Trains with a discriminator, on-policy or off-policy."""

    mode, on_policy, types = "serial_gail", None, ("gail",)


class GuidedCostPipeline(RewardModelPipeline):
    """As `GailPipeline`, with a learned cost."""

    mode, on_policy, types = "serial_guided_cost", None, ("guided_cost",)


class TrexPipeline(RewardModelPipeline):
    """As `GailPipeline`, with rewards learned once from ranked trajectories."""

    mode, on_policy, types = "serial_trex", None, ("trex", "drex")


def _save(data: Columns, path: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    offline_data_save_type(data, path, "naive")
