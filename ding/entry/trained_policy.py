"""Loads trained policies for use: ``ding.load``; from a run's folder, or from the zoo."""

import contextlib
import difflib
import os
import re
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from ding.config.read import read_config_directly
from ding.entry.components import load_config, load_weights
from ding.entry.run.folder import CONFIG_FILE
from ding.envs.env_wrappers.build import WrapperEntry, given_wrappers
from ding.policy import Policy, create_policy
from ding.torch_utils import to_ndarray, to_tensor
from ding.utils import read_file
from ding.utils.default_helper import sizes_of
from ding.utils.errors import CheckpointError, ConfigError
from ding.utils.file_helper import put_in_place, temporary_name
from ding.utils.run_files import why_no_run
from ding.utils.settings import at
from ding.utils.types import Config, Settings, Tree
from ding.worker.collector.steps import Mode

#: Number of observations on which an exported policy must act as the original.
_CHECKS = 64
_TOLERANCE = 1e-4


class TrainedPolicy:
    """Acts as in a run's evaluations: without exploration.

    Observations and actions have the format of the run's environments: if its config wraps them
    (stacked frames, scaled actions), wrap yours in the same way.

    Args:
        policy: A policy with weights and an enabled eval mode.
        obs_shape: Shape of one observation, ``None`` if it is not an array.
        first_action: What is added to choices: the ``start`` of the environment's Discrete or
            MultiDiscrete space, a list for the latter.

    Attributes:
        policy: The policy.
        policy: The policy itself.
    """

    def __init__(
        self,
        policy: Policy,
        obs_shape: tuple[int, ...] | None,
        first_action: int | Sequence[int] = 0,
    ) -> None:
        self.policy = policy
        self._first_action = first_action
        self._mode: Mode = policy.eval_mode
        self._obs_shape = obs_shape
        self.reset()

    def act(self, obs: Tree) -> Tree:
        """The action for one observation, such as an array ``[*obs_shape]``.

        Returns:
            An int for one discrete action, otherwise an array or a dict of arrays.
        """
        with torch.no_grad():
            output = self._mode.forward({0: to_tensor(obs, dtype=torch.float32)})
        action = to_ndarray(output[0]["action"])
        if isinstance(action, np.ndarray) and action.dtype.kind in "iu":
            action = action + self._first_action
            is_one = action.size == 1 and isinstance(self._first_action, int)
            return int(action.item()) if is_one else action
        return action

    def reset(self) -> None:
        """Start an episode: clear the memory of a recurrent policy."""
        self._mode.reset([0])

    def export(self, path: str | os.PathLike[str]) -> None:
        """Export a function from observations ``obs`` [B, *obs_shape] float32 to actions [B, ...].

        The file is read back, and must act on random observations as this policy does.

        Args:
            path: Ends with ``.pt`` (TorchScript) or ``.onnx`` (needs the extra ``onnx``).

        Raises:
            ConfigError: The path ends differently, the policy has a memory or observations that
                are not arrays, or ``onnx`` is not installed.
            CheckpointError: The exported policy acts differently.
        """
        path = os.fspath(path)
        ending = os.path.splitext(path)[1]
        if ending not in (".pt", ".onnx"):
            raise ConfigError(f"cannot export to {path!r}: expected a name with .pt or .onnx")
        if self._obs_shape is None or self.policy._recurrent:
            raise ConfigError("only policies without a memory, that act on arrays, can be exported")
        obs = torch.randn(_CHECKS, *self._obs_shape, generator=torch.Generator().manual_seed(0))
        actor = _Actor(self.policy, self._first_action)
        partial = temporary_name(path) + ending
        try:
            exported = _export(actor, obs[:2], partial)
            for batch in (obs, obs[:1]):  # also with another size than the traced one
                with torch.no_grad():
                    expected = actor(batch).double()
                found = torch.as_tensor(exported(batch)).double()
                if found.shape != expected.shape or not torch.allclose(
                    found, expected, rtol=_TOLERANCE, atol=_TOLERANCE
                ):
                    raise CheckpointError(
                        "the exported policy acts otherwise than this one, so it was not kept"
                    )
            put_in_place(partial, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial)


def load(
    run: str | os.PathLike[str], checkpoint: str | os.PathLike[str] | None = None
) -> TrainedPolicy:
    """Load the policy that a run has trained, on the CPU.

    The run's config is executed as Python: load runs that you trust.

    Args:
        run: The run's folder, or ``zoo:NAME`` for a bundled policy.
        checkpoint: File of the weights; by default the best, or else the newest.

    Raises:
        ConfigError: The run does not exist, or its environments normalise observations.
        CheckpointError: The run has no weights, or they cannot be read.

    Example:

        >>> import ding
        >>> agent = ding.load("zoo:cartpole_dqn")
        >>> int(agent.act([0.0, 0.0, 0.1, 0.5]))  # CartPole: 1 pushes to the right
        1
    """
    found = find_trained(run)
    cfg = load_config(found.config, 0, None, None, command=False, collects=False)
    if _normalises(cfg.env):
        raise ConfigError(
            "its environments normalise observations (env.norm_obs or env.env_wrapper), which "
            "act() cannot; evaluate with ding eval"
        )
    cfg.policy.cuda = False
    path = found.weights if checkpoint is None else os.fspath(checkpoint)
    policy = create_policy(cfg.policy, enable_field=["eval"])
    load_weights(policy.eval_mode, read_file(path), path)
    shape = at(cfg, "policy.model.obs_shape")
    is_array = shape is not None and not isinstance(shape, Mapping)
    first_action = at(cfg, "env.first_action") or 0
    return TrainedPolicy(policy, (*sizes_of(shape),) if is_array else None, first_action)


def _normalises(env: Settings) -> bool:
    """Whether a config's environments normalise observations."""
    if at(env, "norm_obs.use_norm") or at(env, "norm_obs.offline_stats.use_offline_stats"):
        return True
    wrappers: Sequence[WrapperEntry] = []
    with contextlib.suppress(ConfigError):  # a custom class may use this key differently
        wrappers = given_wrappers(env, "evaluator")
    types = [one.get("type") if isinstance(one, Mapping) else one for one in wrappers]
    return any(type_ in types for type_ in ("obs_norm", "static_obs_norm"))


class _Actor(nn.Module):
    """A module from observations to actions that contains the policy's parameters."""

    def __init__(self, policy: Policy, first_action: int | Sequence[int]) -> None:
        super().__init__()
        self._first_action = torch.as_tensor(first_action)
        self.model = policy._model
        self._act = policy._forward_eval_batch

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        action = self._act(obs)["action"]
        if not isinstance(action, torch.Tensor):
            raise ConfigError("only policies whose action is one array can be exported")
        return action + self._first_action if self._first_action.any() else action


def _export(
    actor: nn.Module, example: torch.Tensor, path: str
) -> Callable[[torch.Tensor], ArrayLike]:
    """Write the module to a file, and return the file's content as a function."""
    with torch.no_grad(), warnings.catch_warnings():
        # About values that depend on the example; the export is checked for this.
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(actor, example, check_trace=False)
        if path.endswith(".pt"):
            # Parameters become constants, since it is not trained.
            torch.jit.freeze(traced.eval()).save(path)
            return torch.jit.load(path)
        try:
            from onnx.reference import ReferenceEvaluator
        except ImportError as error:
            raise ConfigError("ONNX needs: pip install 'ding[onnx]'") from error
        torch.onnx.export(
            traced,
            (example,),
            path,
            input_names=["obs"],
            output_names=["action"],
            dynamic_axes={"obs": {0: "batch"}, "action": {0: "batch"}},
            dynamo=False,
        )
    evaluator: Any = ReferenceEvaluator(path)  # its annotation allows results by name
    return lambda obs: evaluator.run(None, {"obs": obs.numpy()})[0]


#: Prefix of the names of bundled policies.
PREFIX = "zoo:"
CHECKPOINT_ENDING = ".pth.tar"
_FOLDER = Path(__file__).resolve().parent.parent / "zoo"
_BEST = "ckpt_best.pth.tar"
_NUMBERED = re.compile(r"iteration_(\d+)\.pth\.tar")


@dataclass(frozen=True)
class TrainedFiles:
    """Files of a trained policy: its config, and its weights if they exist."""

    config: str
    checkpoint: str | None

    @property
    def weights(self) -> str:
        """File of the weights; raises `CheckpointError` if there are none."""
        if self.checkpoint is None:
            folder = os.path.join(os.path.dirname(self.config), "ckpt")
            raise CheckpointError(
                f"{folder} holds no checkpoint: the run ended before it saved one, or its "
                "files were removed; continue it (ding resume), or name one: "
                f"ding -m eval -c {shlex.quote(self.config)} --load-path FILE, or checkpoint= of "
                "ding.load"
            )
        return self.checkpoint


def find_trained(name: str | os.PathLike[str]) -> TrainedFiles:
    """The files of a trained policy.

    Args:
        name: Folder of a run, whose best checkpoint is used, or else the newest; or ``zoo:NAME``.

    Raises:
        ConfigError: The run does not exist, or the zoo has no policy of that name.
    """
    name = os.fspath(name)
    if name.startswith(PREFIX):
        return _find_in_zoo(name.removeprefix(PREFIX))
    config = os.path.join(name, CONFIG_FILE)
    if not os.path.isfile(config):
        raise ConfigError(why_no_run(name, CONFIG_FILE))
    folder = os.path.join(name, "ckpt")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    numbered = [match for match in map(_NUMBERED.fullmatch, names) if match]
    newest = max(numbered, key=lambda match: int(match[1]), default=None)
    chosen = _BEST if _BEST in names else newest and newest[0]
    return TrainedFiles(config, chosen and os.path.join(folder, chosen))


def zoo_names() -> list[str]:
    """Names of the bundled policies."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def zoo_facts(name: str) -> Config:
    """Facts on the training and evaluation of a policy of the zoo."""
    return dict(read_config_directly(_find_in_zoo(name).config)["zoo"])


def _find_in_zoo(name: str) -> TrainedFiles:
    names = zoo_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        meant = f"; did you mean {PREFIX}{near[0]}?" if near else "."
        raise ConfigError(f"the zoo has no {name!r}{meant} `ding eval zoo:` lists what there is")
    stem = os.path.join(_FOLDER, name)
    return TrainedFiles(f"{stem}.yaml", f"{stem}{CHECKPOINT_ENDING}")
