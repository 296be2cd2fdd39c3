"""A trained policy to use: ``ding.load``."""

import contextlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ding.config.check import at
from ding.entry.components import load_config, load_weights
from ding.entry.zoo import find_trained
from ding.policy import Policy, create_policy
from ding.torch_utils import to_ndarray, to_tensor
from ding.utils import read_file
from ding.utils.errors import CheckpointError, ConfigError

#: Observations on which an exported policy has to act as this one does.
_CHECKS = 64
_TOLERANCE = 1e-4


class TrainedPolicy:
    """Acts as a run's evaluations do: without exploring.

    Observations are those that the run's environments give, and actions those that they take: where
    its config wraps them (frames stacked, actions scaled), an environment of one's own has to be
    wrapped alike.

    Args:
        policy: With weights, and the eval mode enabled.
        obs_shape: Of one observation, ``None`` if it is no array.

    Attributes:
        policy: The policy itself.
    """

    def __init__(self, policy: Policy, obs_shape: tuple[int, ...] | None) -> None:
        self.policy = policy
        self._mode: Any = policy.eval_mode
        self._obs_shape = obs_shape
        self.reset()

    def act(self, obs: Any) -> Any:
        """The action for one observation.

        Args:
            obs: An array ``[*obs_shape]``, or what else the environments give.

        Returns:
            An int for one discrete action, otherwise an array or a dict of them.
        """
        with torch.no_grad():
            output = self._mode.forward({0: to_tensor(obs, dtype=torch.float32)})
        action = to_ndarray(output[0]["action"])
        if isinstance(action, np.ndarray) and action.size == 1 and action.dtype.kind in "iu":
            return int(action.item())
        return action

    def reset(self) -> None:
        """An episode begins: forget what a policy with a memory has seen."""
        self._mode.reset([0])

    def export(self, path: str | os.PathLike) -> None:
        """Write what maps observations ``obs`` [B, *obs_shape] float32 to actions [B, ...].

        What was written is read back, and has to act on random observations as this policy does.

        Args:
            path: Ends with ``.pt`` (TorchScript) or ``.onnx`` (needs the extra ``onnx``).

        Raises:
            ConfigError: Another ending, a policy with a memory or with other observations than
                arrays, or ``onnx`` is not installed.
            CheckpointError: The exported policy acts otherwise.
        """
        path = os.fspath(path)
        ending = os.path.splitext(path)[1]
        if ending not in (".pt", ".onnx"):
            raise ConfigError(f"cannot export to {path!r}: expected a name with .pt or .onnx")
        if self._obs_shape is None or self.policy._recurrent:
            raise ConfigError("only policies without a memory, that act on arrays, can be exported")
        obs = torch.randn(_CHECKS, *self._obs_shape, generator=torch.Generator().manual_seed(0))
        actor = _Actor(self.policy)
        stem = os.path.splitext(path)[0]
        partial = f"{stem}.partial{ending}"
        try:
            self._check(_export(actor, obs[:2], partial), actor, obs)
            os.replace(partial, path)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(partial)

    @staticmethod
    def _check(
        exported: Callable[[torch.Tensor], Any], actor: nn.Module, obs: torch.Tensor
    ) -> None:
        for batch in (obs, obs[:1]):  # also of other sizes than the one traced
            with torch.no_grad():
                expected = actor(batch)
                found = torch.as_tensor(exported(batch))
            same = found.shape == expected.shape and torch.allclose(
                found.double(), expected.double(), rtol=_TOLERANCE, atol=_TOLERANCE
            )
            if not same:
                raise CheckpointError(
                    "the exported policy acts otherwise than this one, so it was not kept"
                )


def load(run: str | os.PathLike, checkpoint: str | os.PathLike | None = None) -> TrainedPolicy:
    """The policy that a run has trained, on the CPU.

    The run's config is executed as Python: load runs that you trust.

    Args:
        run: The run's folder, or ``zoo:NAME`` for a policy that the package brings.
        checkpoint: File of the weights; by default the best, or else the newest.

    Raises:
        ConfigError: There is no run, or its environments normalise what the policy sees.
        CheckpointError: It has no weights, or they cannot be read.
    """
    found = find_trained(run)
    cfg = load_config(found.config, 0, None, None, command=False, collects=False)
    if at(cfg, "env.norm_obs.use_norm"):
        raise ConfigError(
            "its environments normalise observations (env.norm_obs), which act() cannot; evaluate "
            "with ding eval"
        )
    cfg.policy.cuda = False
    path = found.weights if checkpoint is None else os.fspath(checkpoint)
    policy = create_policy(cfg.policy, enable_field=["eval"])
    load_weights(policy.eval_mode, read_file(path), path)
    return TrainedPolicy(policy, _shape(at(cfg, "policy.model.obs_shape")))


class _Actor(nn.Module):
    """Observations to actions, as one module that has the policy's parameters."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.model = policy._model
        self._act = policy._forward_eval_batch

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        action = self._act(obs)["action"]
        if not isinstance(action, torch.Tensor):
            raise ConfigError("only policies whose action is one array can be exported")
        return action


def _export(actor: nn.Module, example: torch.Tensor, path: str) -> Callable[[torch.Tensor], Any]:
    """Write it, and give what was written back as a function."""
    with torch.no_grad(), warnings.catch_warnings():
        # Of what depends on the example. Whether anything does is checked.
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(actor, example, check_trace=False)
        if path.endswith(".pt"):
            # Parameters become constants: whoever runs it needs no gradients.
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


def _shape(obs_shape: Any) -> tuple[int, ...] | None:
    if isinstance(obs_shape, int):
        return (obs_shape,)
    if isinstance(obs_shape, Sequence) and not isinstance(obs_shape, str | Mapping):
        return tuple(obs_shape)
    return None
