"""Demonstrations: from an expert that plays in the run's environments, or from a file."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from easydict import EasyDict
from tensorboardX import SummaryWriter
from torch import Tensor

from ding.data import Columns, create_dataset
from ding.data.offline.checks import check_transitions
from ding.data.offline.trajectories import in_trajectories
from ding.data.offline.transition_dataset import transitions_of
from ding.entry.components import (
    Components,
    InputConfig,
    load_config,
    load_weights,
    make_env_manager,
    seed_envs,
)
from ding.entry.run.folder import CONFIG_FILE
from ding.entry.serial_entry import SerialPipeline
from ding.entry.trained_policy import PREFIX, find_trained
from ding.policy import create_policy
from ding.policy.common_utils import sample_columns
from ding.utils import read_file
from ding.utils.errors import ConfigError, DataError
from ding.utils.settings import EnvSetting
from ding.utils.types import Settings, Tree
from ding.worker import SampleSerialCollector
from ding.worker.collector.steps import Mode

#: Steps of an expert if the config does not set `policy.expert_random_collect_size`.
DEFAULT_COUNT = 5000
#: Converts columns of trajectories and their lengths to training samples.
Cut = Callable[[dict[str, Tree], np.ndarray], dict[str, Tree]]


class ExpertPipeline(SerialPipeline):
    """Trains with an expert, which is loaded before training unless the caller has done so.

    Attributes:
        columns: Columns to read from the file ``policy.collect.data_path``, which replaces an
            expert; empty if no such file is read.
        expert: The expert's policy, or its transitions.
    """

    columns: tuple[str, ...] = ()
    expert: Columns | Mode = None
    _is_given = False

    def find_expert(
        self, expert_cfg: InputConfig | None = None, model: torch.nn.Module | None = None
    ) -> None:
        """Load the expert according to the arguments, or else to the config."""
        self._is_given = expert_cfg is not None or model is not None
        self.expert = self.found(expert_cfg, model)

    def found(
        self, expert_cfg: InputConfig | None, model: torch.nn.Module | None
    ) -> Columns | Mode:
        """The transitions of ``policy.collect.data_path``, or the policy of ``model_path``."""
        if self.columns and (file := self.cfg.policy.collect.get("data_path")):
            return read_transitions(file, "policy.collect.data_path", self.cfg, self.columns)
        path, key = self.cfg.policy.collect.get("model_path"), "policy.collect.model_path"
        return load_expert(path, key, expert_cfg, self.cfg.seed, self.env_setting, model)

    def outfit(self, parts: Components) -> None:
        if self.expert is None:
            self.find_expert()
        if self._is_given:
            parts.mode = ""  # no command can resume the run

    @property
    def count(self) -> int:
        """Number of demonstrations in the file, or to be played."""
        if isinstance(self.expert, Columns):
            return len(self.expert)
        return self.cfg.policy.get("expert_random_collect_size") or DEFAULT_COUNT

    def play(
        self,
        expert: Mode,
        mode: Mode,
        count: int,
        cut: Cut | None = None,
        noise: float = 0.0,
        writer: SummaryWriter | None = None,
    ) -> Columns:
        """Training samples of an expert that acts in the run's environments.

        Its environments and the noise have separate seeds: the samples depend only on the run's
        seed.

        Args:
            mode: Collect mode of the trained policy; it is reset at the end.
            cut: Converts transitions to samples; by default as ``mode`` does.
            noise: Fraction of random actions that replace the expert's.
            writer: Writer of the collector's scalars.
        """
        cfg = self.cfg
        if cut is not None and mode.batched is None:
            raise ConfigError(
                f"policy.type={cfg.policy.type!r} makes its samples row by row; demonstrations "
                "need a policy with _forward_collect_batch and _get_train_columns"
            )
        with contextlib.ExitStack() as stack:
            env = make_env_manager(cfg, self.env_setting, evaluate=False)
            stack.callback(env.close)
            seed_envs(env, cfg.seed, "expert")
            collector = SampleSerialCollector(
                EasyDict({**SampleSerialCollector.default_config(), "collect_print_freq": 10**9}),
                env,
                _played_by(expert.eval_mode, mode, cut, noise, cfg.seed),
                tb_logger=writer,
                exp_name=cfg.exp_name,
                instance_name="demonstrations",
            )
            stack.callback(collector.close)
            if self.watch is not None:
                collector.before_step = self.watch.stepping
                stack.callback(self.watch.rest)
            samples = collector.collect(count)
            mode.reset()
        return samples if isinstance(samples, Columns) else Columns.from_rows(samples)


def load_expert(
    path: str | None,
    key: str,
    expert_cfg: InputConfig | None,
    seed: int,
    env_setting: EnvSetting | None = None,
    model: torch.nn.Module | None = None,
    usual_cfg: InputConfig | None = None,
) -> Mode:
    """An expert policy with its weights, ready to evaluate.

    Args:
        path: A checkpoint, a run's folder, or ``zoo:NAME``; not needed with ``model``.
        key: The config key of ``path``, for messages.
        expert_cfg: Config of the expert; by default that of the run to which ``path`` belongs.
        model: The expert's network with its weights.
        usual_cfg: Config of the expert if neither is known.

    Raises:
        ConfigError: There is no path and no model, or no config of the expert.
        CheckpointError: The weights cannot be read, or do not fit.
    """
    if not path and model is None:
        raise ConfigError(
            f"{key} is missing: name the expert's checkpoint, such as "
            "'<run>/ckpt/ckpt_best.pth.tar', a run's folder or 'zoo:cartpole_ppo', or pass "
            "expert_model"
        )
    if path and (path.startswith(PREFIX) or os.path.isdir(path)):
        found = find_trained(path)
        path, expert_cfg = found.weights, found.config if expert_cfg is None else expert_cfg
    if expert_cfg is None:
        of_run = os.path.join(os.path.dirname(os.path.dirname(path or "")), CONFIG_FILE)
        expert_cfg = of_run if os.path.isfile(of_run) else usual_cfg
        if expert_cfg is None and path and not os.path.exists(path):
            raise ConfigError(f"{key}={path!r} does not exist: train the expert first")
        if expert_cfg is None:
            raise ConfigError(
                f"{key}={path!r} is no checkpoint in the folder of a run, so that the expert's "
                "config is not known: pass expert_cfg"
            )
    compiled = load_config(expert_cfg, seed, env_setting, model, command=False, collects=False)
    expert = create_policy(compiled.policy, model=model, enable_field=["eval"])
    if expert.eval_mode.batched is None:
        raise ConfigError(
            f"{type(expert).__name__} acts in one environment at a time; demonstrations need an "
            "expert with _forward_eval_batch"
        )
    if path:
        load_weights(expert.eval_mode, read_file(path), f"{key}={path!r}", "the expert's config")
    return expert


def read_transitions(path: str, key: str, cfg: Settings, required: Sequence[str]) -> Columns:
    """Read demonstrations from a file: the columns ``required``, checked against the config.

    Args:
        path: A file of `ding.entry.collect_demo_data`, or another data set of transitions of the
            type ``policy.collect.data_type``.
        key: The config key of ``path``, for messages.

    Raises:
        DataError: A column is missing, contains NaN, or does not fit the shapes of
            ``policy.model``.
    """
    source = f"the demonstrations {path!r} ({key})"
    collect = {**cfg["policy"]["collect"], "data_path": path}
    data = transitions_of(create_dataset({"policy": {**cfg["policy"], "collect": collect}}))
    check_transitions(data, required, cfg["policy"], source)
    columns = data.columns_or_none() if isinstance(data, Columns) else None
    if columns is None:
        raise DataError(f"{source} holds transitions of different shapes; expected one shape")
    shape = cfg["policy"].get("model", {}).get("obs_shape")
    for name in {"obs", "next_obs"} & {*required}:
        column = columns[name]
        if isinstance(column, Mapping) and isinstance(shape, int | list | tuple):
            raise DataError(
                f"{name!r} of {source} has several arrays ({', '.join(map(str, column))}); "
                f"expected one of the shape {shape}, by policy.model.obs_shape"
            )
    return Columns({name: columns[name] for name in required})


def as_samples(data: Columns, cut: Cut) -> Columns:
    """Convert a data set's transitions to training samples in the form of collected ones."""
    columns, lengths = in_trajectories(data)
    return sample_columns(cut({**columns, "collect_iter": np.zeros(len(data), np.int64)}, lengths))


def _played_by(expert: Mode, policy: Mode, cut: Cut | None, noise: float, seed: int) -> Mode:
    """A collect mode in which the expert acts, and which makes the samples of ``policy``."""

    generator = torch.Generator().manual_seed(seed)

    def disturbed(action: Tensor, output: Mapping[str, Tensor]) -> Tensor:
        # Noise: replace some actions by other choices, or uniformly in [-1, 1].
        if not noise:
            return action
        if action.is_floating_point():
            other = torch.rand(action.shape, generator=generator) * 2 - 1
        else:
            choices = output["logit"].shape[-1]
            other = torch.randint(choices, action.shape, generator=generator)
        replaced = torch.rand(len(action), generator=generator) < noise
        return torch.where(replaced.view(-1, *[1] * (action.dim() - 1)), other, action)

    def act(obs: Tree, env_ids: Sequence[int] | None = None) -> dict[str, Tree]:
        ids = {"env_ids": env_ids}
        outputs = {}
        if policy.batched.transition_outputs:
            own = ids if policy.batched.recurrent else {}
            outputs = policy.batched.forward(obs, eps=0.0, **own)
        its = ids if expert.batched.recurrent else {}
        done = expert.batched.forward(obs, **its)
        return {**outputs, "action": disturbed(done["action"], done)}

    def act_rows(data: Mapping[int, Tree]) -> dict[int, dict[str, Tree]]:
        outputs = policy.forward(data, eps=0.0)
        return {
            i: {**outputs[i], "action": one["action"]} for i, one in expert.forward(data).items()
        }

    def reset(data_id: list[int] | None = None) -> None:
        policy.reset(data_id)
        expert.reset(data_id)

    mode = policy._replace(forward=act_rows, reset=reset)
    mode.batched = dataclasses.replace(
        policy.batched,
        forward=act,
        resets=True,
        recurrent=policy.batched.recurrent or expert.batched.recurrent,
    )
    if cut is not None:
        mode.batched = dataclasses.replace(mode.batched, get_train_columns=cut, takes_indexed=False)
    return mode


def bare(mode: Mode) -> Mode:
    """A collect mode whose transitions contain no policy outputs."""
    found = mode._replace()
    if mode.batched is not None:
        found.batched = dataclasses.replace(mode.batched, transition_outputs=())
    return found
