"""The base class of all policies: settings, modes and attributes.

A policy acts on batches. A subclass defines batched cores, from which this module derives the
per-environment API. A subclass that overrides the per-environment methods instead also works
everywhere, but more slowly: its modes have no ``batched`` cores, and collectors pass it dicts of
environments.
"""

import functools
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import torch
from easydict import EasyDict

from ding.model import model_wrap
from ding.policy import modes
from ding.policy._types import Network
from ding.policy.cores import Cores
from ding.policy.learning import Learning
from ding.policy.mode_states import ModeStates
from ding.policy.own_state import OwnState
from ding.utils import POLICY_REGISTRY, get_rank, import_module
from ding.utils.default_helper import class_config
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import component
from ding.utils.settings import at
from ding.utils.types import Config

_logger = logging.getLogger(__name__)


@functools.cache
def warn_of_no_gpu() -> None:
    """Warn, once per process, that ``policy.cuda`` is not available."""
    _logger.warning("policy.cuda is true, but torch finds no CUDA device: using the CPU")


class Policy(Learning, Cores, ModeStates):
    """Base class of policies: a network, its training, and how it acts.

    Subclasses define ``config`` (defaults), ``default_model``, and the protected methods of the
    modes that they support. Batched subclasses define ``_forward_collect_batch``,
    ``_forward_eval_batch`` and ``_get_train_columns``; others override ``_forward_collect``,
    ``_process_transition``, ``_get_train_sample`` and ``_forward_eval``.

    Args:
        cfg: Compiled policy config.
        model: Network to use instead of the one that ``cfg.model`` describes.
        enable_field: Modes to set up, of ``learn, collect, eval`` (and ``command``); all by
            default.

    Raises:
        ConfigError: An unknown mode.

    Example:

        >>> from ding.policy import DQNPolicy
        >>> class NoisierDQN(DQNPolicy):
        ...     config = dict(other=dict(eps=dict(start=1.0)))  # over the defaults of DQN
        >>> NoisierDQN.default_config().other.eps.start
        1.0
    """

    learn_function = modes.learn_function
    collect_function = modes.collect_function
    eval_function = modes.eval_function
    command_function = modes.command_function
    total_field = frozenset({"learn", "collect", "eval"})

    config: dict[str, Any] = dict(
        on_policy=False,
        cuda=False,
        multi_gpu=False,
        # No effect: several learners average their gradients after the backward pass.
        bp_update_sync=True,
        traj_len_inf=False,
        model=dict(),
        # Compile the networks: True, or one of torch.compile's modes ('reduce-overhead' makes CUDA
        # graphs). Pays on GPUs; measure it (`benchmarks/gpu.py`).
        learn=dict(resume_training=False, compile=None, mixed_precision=False),
        collect=dict(),
        eval=dict(),
        other=dict(),
    )

    #: The algorithm's paper.
    paper: str = ""
    #: Its training pipeline if `on_policy` does not determine it, such as `serial_offline`.
    pipeline: str = ""

    #: Keys below ``policy`` that must not be set, and the alternative for each.
    _refused: Mapping[str, str] = {}
    #: Keys below ``policy`` that its configs may contain without effect.
    _silent_keys: tuple[str, ...] = ()
    #: Key of its discount factor below ``policy``; empty if it has none.
    _discount_key: str = ""
    #: Keys whose value may have another type than the default.
    _any_kind_keys: tuple[str, ...] = ()

    @classmethod
    def default_config(cls) -> EasyDict:
        """Defaults of this class, merged over those of its base classes."""
        return class_config(cls)

    def __init__(
        self,
        cfg: EasyDict,
        model: torch.nn.Module | None = None,
        enable_field: list[str] | None = None,
    ) -> None:
        self._cfg = cfg
        self._layouts = set()
        self._refuse_settings()
        self._report_settings()
        self._on_policy = cfg.on_policy
        self._enable_field = self._check_fields(enable_field)
        self._joint = bool(cfg.get("multi_gpu", False))
        self._rank = get_rank() if self._joint else 0
        self._cuda = bool(cfg.cuda) and torch.cuda.is_available()
        if cfg.cuda and not self._cuda:
            warn_of_no_gpu()
        self._device = f"cuda:{self._rank % torch.cuda.device_count()}" if self._cuda else "cpu"
        self._model = self._create_model(cfg, model)
        # The command mode needs no network; with this mode alone, the network is not checked.
        if self._enable_field - {"command"}:
            self._check_model(self._model)
            self.check_network(cfg.get("model") or {})
        if self._cuda:
            self._model.to(self._device)
        self._learn_model: Network = model_wrap(self._model, "base")
        # Before the modes: optimisers and target networks start from these weights.
        if self._joint:
            self._broadcast_model(self._model)
        # Order matters: the collect and eval modes wrap the model that the learn mode has set up.
        for name in ("learn", "collect", "eval", "command"):
            if name in self._enable_field:
                getattr(self, f"_init_{name}")()
        if "learn" in self._enable_field and cfg.learn.get("mixed_precision", False):
            self._compute_in_bfloat16()
        if "learn" in self._enable_field and cfg.learn.get("compile", False):
            self._compile(cfg.learn.compile)
        self._own_state = OwnState(self, self._saved_attributes(), with_bases=True)

    def _refuse_settings(self) -> None:
        for key, instead in self._refused.items():
            if value := at(self._cfg, key):
                raise ConfigError(
                    f"policy.{key}={value!r}: {type(self).__name__} does not have it; {instead}"
                )

    def _settings_without_effect(self) -> Mapping[str, str]:
        """Keys below ``policy`` without effect under the current config, and the alternatives."""
        here = self._discount_key
        places = ("discount_factor", "learn.discount_factor", "collect.discount_factor")
        values = {place: at(self._cfg, place) for place in places if here}
        others = (place for place in values if values[place] not in (None, values[here]))
        return dict.fromkeys(others, f"set policy.{here}")

    def _report_settings(self) -> None:
        idle = self._settings_without_effect()
        defaults = self.default_config() if idle else {}
        for key, instead in idle.items():
            value = at(self._cfg, key)
            # A key with its default value was probably not set by the user.
            if value != at(defaults, key):
                _logger.warning("policy.%s=%r has no effect: %s", key, value, instead)

    def _check_fields(self, enable_field: Sequence[str] | None) -> frozenset[str]:
        if enable_field is None:
            return frozenset(self.total_field)
        unknown = set(enable_field) - set(self.total_field)
        if unknown:
            raise ConfigError(
                f"{type(self).__name__} has the modes {sorted(self.total_field)}, "
                f"enable_field asks for {sorted(unknown)}"
            )
        return frozenset(enable_field)

    @property
    def cfg(self) -> EasyDict:
        """The complete policy config."""
        return self._cfg

    @property
    def learn_mode(self) -> modes.learn_function:
        """Training; see `modes.learn_function`."""
        return Policy.learn_function(
            self._forward_learn,  # type: ignore[arg-type]  # most take no keyword arguments
            self._reset_learn,
            self.__repr__,
            self._monitor_vars_learn,
            *self._attributes_and_state("learn"),
        )

    @property
    def collect_mode(self) -> modes.collect_function:
        """Acting with exploration; see `modes.collect_function`."""
        mode = Policy.collect_function(
            self._forward_collect,
            self._process_transition,
            self._get_train_sample,
            self._reset_collect,
            *self._attributes_and_state("collect"),
        )
        if self._cuts_samples() and not self._overrides("_get_train_sample"):
            mode.get_train_samples = self._get_train_samples
        rows_only = ("_forward_collect", "_process_transition", "_get_train_sample")
        if self._cuts_samples() and self._has_core("_forward_collect_batch", *rows_only):
            mode.batched = modes.BatchedCollect(
                self._collect_columns,
                self._transition_outputs,
                self._get_train_columns,
                self._overrides("_reset_collect"),
                self._recurrent,
                self._count_train_samples,
                getattr(self._get_train_columns, "takes_indexed", False),
            )
        return mode

    @property
    def eval_mode(self) -> modes.eval_function:
        """Acting without exploration; see `modes.eval_function`."""
        mode = Policy.eval_function(
            self._forward_eval,  # type: ignore[arg-type]  # likewise
            self._reset_eval,
            *self._attributes_and_state("eval"),
        )
        if self._has_core("_forward_eval_batch", "_forward_eval"):
            resets = self._overrides("_reset_eval")
            mode.batched = modes.BatchedEval(self._eval_columns, resets, self._recurrent)
        return mode

    def _attributes_and_state(self, mode: str) -> tuple[Any, Any, Any, Any]:
        save = partial(self._save_mode, getattr(self, f"_state_dict_{mode}"))
        load = partial(self._load_mode, getattr(self, f"_load_state_dict_{mode}"))
        return self._get_attribute, self._set_attribute, save, load

    def _has_core(self, core: str, *row_methods: str) -> bool:
        # If a subclass overrides a per-environment method, the method must be called.
        return self._overrides(core) and not any(self._overrides(name) for name in row_methods)

    def _set_attribute(self, name: str, value: object) -> None:
        setattr(self, f"_{name}", value)

    def _get_attribute(self, name: str) -> Any:
        """The value of ``self._get_<name>()`` or ``self._<name>``."""
        if hasattr(self, f"_get_{name}"):
            return getattr(self, f"_get_{name}")()
        if hasattr(self, f"_{name}"):
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _get_n_sample(self) -> int | None:
        return self._cfg.collect.get("n_sample")

    def _get_n_episode(self) -> int | None:
        return self._cfg.collect.get("n_episode")

    def _get_batch_size(self) -> int | dict[str, int] | None:
        return self._cfg.learn.get("batch_size")

    def _get_unroll_len(self) -> int:
        return self._cfg.collect.get("unroll_len", 1)

    def _get_traj_len_inf(self) -> bool:
        cfg = self._cfg
        return bool(cfg.get("traj_len_inf") or cfg.collect.get("traj_len_inf", False))

    def _get_priority(self) -> bool:
        return self._cfg.get("priority", False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n{self._model!r}\n)"


class CommandModePolicy(Policy):
    """A policy that also provides settings for the pipeline: exploration, learning, evaluation."""

    total_field = frozenset({"learn", "collect", "eval", "command"})

    @property
    def command_mode(self) -> modes.command_function:
        """Settings of the other modes that change during a run; see `modes.command_function`."""
        return CommandModePolicy.command_function(
            self._get_setting_learn, self._get_setting_collect, self._get_setting_eval
        )

    def _init_command(self) -> None:
        """Set up the attributes behind the settings, such as the ε schedule."""

    def _get_setting_learn(self, command_info: Config) -> Config:
        return {}

    def _get_setting_collect(self, command_info: Config) -> Config:
        return {}

    def _get_setting_eval(self, command_info: Config) -> Config:
        return {}


def create_policy(cfg: Mapping[str, Any], **kwargs: Any) -> Policy:
    """Build the registered policy ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The policy's ``type``, and its keys that differ from the defaults.
        kwargs: ``model`` and ``enable_field`` of `Policy`.

    Raises:
        UnknownTypeError: No policy of this type is registered.

    Example:

        >>> from ding.policy import create_policy
        >>> cfg = dict(type="dqn", model=dict(obs_shape=4, action_shape=2))
        >>> type(create_policy(cfg, enable_field=["eval"])).__name__
        'DQNPolicy'
    """
    cls, cfg = component(POLICY_REGISTRY, cfg)
    return cast(Policy, cls(cfg=cfg, **kwargs))


def get_policy_cls(cfg: EasyDict) -> type[Policy]:
    """The registered policy class ``cfg.type``; ``cfg.import_names`` are imported first."""
    import_module(cfg.get("import_names", []))
    return cast(type[Policy], POLICY_REGISTRY.get(cfg.type))
