"""A policy's network: created or passed in, checked, and compiled."""

import copy
import functools
import inspect
import os
import shutil
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any

import torch
from easydict import EasyDict

from ding.model import create_model
from ding.model.wrapper.base import innermost
from ding.policy.networks import Call, require_parts, try_network
from ding.torch_utils.data_helper import map_leaves
from ding.utils import MODEL_REGISTRY, import_module
from ding.utils.builtin_types import BUILTIN_TYPES
from ding.utils.errors import ConfigError
from ding.utils.types import Tree


class NetworkOwner:
    """What a policy declares about its network, and how the network is built and checked."""

    #: Registered name of the network; and of a team's network (``policy.multi_agent``).
    _network = _team_network = ""
    #: Calls that the network must support, by kind of action; empty if there is only one kind.
    networks: Mapping[str, tuple[Call, ...]] = {}
    #: Allowed values of `policy.action_space`, and the network's names for them; empty if the
    #: network has no such argument.
    _action_spaces: Mapping[str, str] = {}
    #: Parts of the network with separate optimisers.
    network_parts: tuple[str, ...] = ()

    _cfg: EasyDict
    _model: torch.nn.Module
    _enable_field: frozenset[str]
    _cuda: bool
    _device: str

    def _create_model(self, cfg: EasyDict, model: torch.nn.Module | None) -> torch.nn.Module:
        space = self._action_spaces and self._checked_action_space(cfg)
        if model is not None:
            if not isinstance(model, torch.nn.Module):
                raise ConfigError(f"model must be a torch.nn.Module, got {type(model).__name__}")
            return model
        model_cfg = EasyDict(copy.deepcopy(dict(cfg.get("model") or {})))
        if space and model_cfg.setdefault("action_space", space) != space:
            raise ConfigError(
                f"policy.action_space is {cfg.action_space!r}, policy.model.action_space "
                f"{model_cfg.action_space!r}: they must be the same"
            )
        if "type" not in model_cfg:
            model_type, import_names = self.default_model()
            model_cfg.type, model_cfg.import_names = model_type, import_names
        return create_model(_known_to_the_model(model_cfg))

    def _checked_action_space(self, cfg: EasyDict) -> str:
        """The network's name for ``policy.action_space``."""
        if cfg.action_space not in self._action_spaces:
            raise ConfigError(
                f"policy.action_space is {cfg.action_space!r}; {type(self).__name__} knows "
                + " and ".join(map(repr, self._action_spaces))
            )
        return self._action_spaces[cfg.action_space]

    def _check_model(self, model: Any) -> None:
        """Reject a network that learning, collecting or evaluating cannot use."""
        require_parts(self, model, self.network_calls)

    @property
    def network_calls(self) -> tuple[Call, ...]:
        """The calls that this policy makes to its network."""
        usual = next(iter(self.networks.values()), ())
        calls = self.networks.get(self._cfg.get("action_space"), usual)
        return tuple(call.of_team() for call in calls) if self._cfg.get("multi_agent") else calls

    def check_network(self, shapes: Mapping[str, Any], obs: Any = None) -> None:
        """Run a custom network, if the policy is of this package; see `try_network`.

        Args:
            shapes: ``obs_shape`` and ``action_shape``.
            obs: An observation of environments with these shapes.
        """
        ours, own = (type(one).__module__.split(".")[0] for one in (self, self._model))
        if ours == "ding" != own and "learn" in self._enable_field:
            try_network(self, self._model, shapes, obs)

    def default_model(self) -> tuple[str, list[str]]:
        """Registered name of the default network, and the modules that register it."""
        name = (self._cfg.get("multi_agent") and self._team_network) or self._network
        if not name:
            raise ConfigError(
                f"{type(self).__name__} has no default model: set policy.model.type or pass `model`"
            )
        return name, [BUILTIN_TYPES["model"][name]]

    def _compile(self, mode: bool | str) -> None:
        """Compile the networks; torch compiles at the first calls, which takes up to a minute."""
        modes = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
        if mode is not True and mode not in modes:
            raise ConfigError(
                f"policy.learn.compile is {mode!r}; expected True, None or one of {modes}"
            )
        compilers = [os.environ.get("CXX", "g++"), "clang++", "cl"]
        if not self._cuda and not any(map(shutil.which, compilers)):
            raise ConfigError(
                f"policy.learn.compile={mode!r} needs a C++ compiler, but none was found among "
                f"{compilers}: install one, or set the key to None, which computes the same"
            )
        for network in self._networks():
            network.compile(mode=None if mode is True else mode)

    def _compute_in_bfloat16(self) -> None:
        """Let networks multiply in bfloat16. Parameters, outputs and all that policies compute of
        them stay float32, and gradients need no scaling, as the range of both is the same
        (Micikevicius et al. 2018; Kalamkar et al. 2019, https://arxiv.org/abs/1905.12322)."""
        for network in self._networks():
            # Bound to the network, so that copies of it call their own.
            network.forward = MethodType(_in_bfloat16(type(network).forward), network)

    def _networks(self) -> list[torch.nn.Module]:
        networks = (self._model, getattr(self, "_target_model", None))
        return [innermost(network) for network in networks if network is not None]


def _in_bfloat16(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def call(network: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        device = next(network.parameters()).device.type
        with torch.autocast(device, torch.bfloat16):
            output = forward(network, *args, **kwargs)
        return map_leaves(_single, output)

    return call


def _single(leaf: Tree) -> Tree:
    is_half = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.bfloat16
    return leaf.float() if is_half else leaf


def _known_to_the_model(cfg: EasyDict) -> EasyDict:
    """``policy.model`` without keys that the model does not take: configs may contain others."""
    import_module(cfg.get("import_names", []))
    parameters = inspect.signature(MODEL_REGISTRY.get(cfg.type)).parameters
    missing = [
        name
        for name, one in parameters.items()
        if one.default is one.empty
        and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        and name not in cfg
    ]
    if missing:
        raise ConfigError(
            f"policy.model lacks {' and '.join(missing)}, which the network {cfg.type!r} needs: "
            "say what they are, or name the environment when the config is compiled, as with "
            "compile_config(..., create_cfg=dict(env=dict(type='gymnasium'))), which asks it"
        )
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return cfg
    taken = {"type", "import_names", *parameters}
    return EasyDict({key: value for key, value in cfg.items() if key in taken})
