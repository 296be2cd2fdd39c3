"""What all policies share: modes, models, attributes, and the adapters between rows and columns.

A policy's work is batched. A subclass writes the batched cores and gets the per-environment API
from here; one that overrides the per-environment methods instead works everywhere too, more
slowly: its modes then carry no ``batched`` cores, and collectors hand it dicts of environments.
"""

import copy
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from operator import getitem
from typing import Any, cast

import numpy as np
import torch
from easydict import EasyDict

from ding.data import tree_length, tree_map
from ding.envs.env.answers import brief
from ding.model import model_wrap
from ding.policy import modes
from ding.policy._types import (
    Action,
    Arrays,
    Lengths,
    Log,
    Network,
    Obs,
    Output,
    Samples,
    Settings,
    State,
    Tree,
)
from ding.policy.checks import PER_AGENT, check_loss, check_samples, layout_of
from ding.policy.common_utils import default_preprocess_learn
from ding.policy.network_owner import NetworkOwner
from ding.policy.own_state import OwnState
from ding.policy.row_adapter import RowAdapter
from ding.policy.saved_state import complete, load_state, save_state
from ding.torch_utils.gradients import average_gradients
from ding.torch_utils.model_helper import set_training
from ding.torch_utils.optimizer_helper import calculate_grad_norm
from ding.utils import (
    POLICY_REGISTRY,
    allreduce_data,
    get_rank,
    get_world_size,
    import_module,
)
from ding.utils.default_helper import class_config
from ding.utils.errors import ConfigError, DataError
from ding.utils.registry_factory import component

#: Layouts of batches that are remembered as right.
_MOST_LAYOUTS = 64


_logger = logging.getLogger(__name__)


@functools.cache
def warn_of_no_gpu() -> None:
    """Report, once in a process, that ``policy.cuda`` cannot be had."""
    _logger.warning("policy.cuda is true, but torch finds no CUDA device: using the CPU")


class Policy(RowAdapter, NetworkOwner):
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
        learn=dict(resume_training=False, compile=None),
        collect=dict(),
        eval=dict(),
        other=dict(),
    )

    #: Where the algorithm comes from.
    paper: str = ""
    #: Actions that it can choose, of `ding.policy.fit.KINDS`; empty if undeclared.
    actions: tuple[str, ...] = ()
    #: How it is trained if `on_policy` does not determine it: `serial_offline` or `serial_bc`.
    pipeline: str = ""

    #: By what the environments of its run normalise, if they do; part of every state. A
    #: policy is only valid with the statistics that it was trained with.
    _env_statistics: State | None = None

    #: Numbers of what `_forward_learn` returns that are logged, in addition to those of the base
    #: classes; if there are none, all are.
    _logged: tuple[str, ...] = ()

    #: Names of numbers in the log where they differ from those in the code, below those of the base
    #: classes; ``None`` for what is not logged. Dashboards know these names.
    _log_names: Mapping[str, str | None] = {}
    #: The same, those of all base classes among them.
    _log_name_of: Mapping[str, str | None] = {}
    #: Whether the norm of the gradients is logged, as ``grad_norm``.
    _logs_grad_norm = False
    _grad_norm = 0.0

    #: Columns of a data set that the policy learns from; ``None`` if that is not known.
    data_columns: tuple[str, ...] | None = None

    #: What checkpoints hold in addition to the networks: entry to attribute, see `save_state`.
    _learned: Mapping[str, str] = {"optimizer": "_optimizer"}
    #: Optimisers that old checkpoints hold under another entry: their entry here, to that entry and
    #: the parts of the network in the order in which it counts their parameters.
    _old_optimizers: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    #: What acting depends on in addition to the network, in states of the collect mode; likewise.
    _acted_with: Mapping[str, str] = {}
    #: Whether there is a target network, `_target_model`, in checkpoints too.
    _saves_target = False

    #: Policy outputs, other than the action, that are part of each transition.
    _transition_outputs: tuple[str, ...] = ()

    #: Keys, below ``policy``, that must not be set for it, with what to do instead.
    _refused: Mapping[str, str] = {}
    #: Keys, below ``policy``, that configs for it may hold and that have no effect on it.
    _silent_keys: tuple[str, ...] = ()
    #: Those that may be of another kind than their default.
    _any_kind_keys: tuple[str, ...] = ()

    #: What minibatches hold of the samples, where samples have it.
    _minibatch_columns: tuple[str, ...] = ()

    #: How many rewards a sample has, if its column is ``[nstep, B]``; None if it is ``[B]``.
    _rewards_per_sample: int | None = None

    #: Whether to learn with the priorities of samples, and their importance weights.
    _priority = _priority_IS_weight = False

    #: Whether acting depends on earlier observations: the batched cores receive the ids of the
    #: environments (``env_ids``), and samples may be sequences (`sequences`).
    _recurrent = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tables = [vars(one).get("_log_names", {}) for one in reversed(cls.__mro__)]
        cls._log_name_of = {name: shown for table in tables for name, shown in table.items()}

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
        self._layouts: set[object] = set()
        self._refuse_settings()
        self._on_policy = cfg.on_policy
        self._enable_field = self._check_fields(enable_field)
        #: Whether several learners train this policy together, as one with their joint batch.
        self._joint = bool(cfg.get("multi_gpu", False))
        self._rank = get_rank() if self._joint else 0
        self._cuda = bool(cfg.cuda) and torch.cuda.is_available()
        if cfg.cuda and not self._cuda:
            warn_of_no_gpu()
        self._device = f"cuda:{self._rank % torch.cuda.device_count()}" if self._cuda else "cpu"
        self._model = self._create_model(cfg, model)
        # The command mode alone needs no network, and is given a blank one.
        if self._enable_field - {"command"}:
            self._check_model(self._model)
            self.check_network(cfg.get("model") or {})
        if self._cuda:
            self._model.to(self._device)
        self._learn_model: Network = model_wrap(self._model, "base")
        if self._joint:
            self._broadcast_model(self._model)
        # Order matters: collect and eval wrap the model that learn has set up.
        for name in ("learn", "collect", "eval", "command"):
            if name in self._enable_field:
                getattr(self, f"_init_{name}")()
        if "learn" in self._enable_field and cfg.learn.get("compile", False):
            self._compile(cfg.learn.compile)
        self._own_state = OwnState(self, self._saved_attributes(), with_bases=True)

    def _saved_attributes(self) -> set[str]:
        """Attributes that states hold as separate entries."""
        target = {"_target_model"} if self._saves_target else set()
        held = {*self._learned.values(), *self._acted_with.values(), *target}
        return {"_cfg", "_model", "_env_statistics", "_layouts", *held}

    def _refuse_settings(self) -> None:
        for key, instead in self._refused.items():
            *sections, name = key.split(".")
            value = reduce(getitem, sections, self._cfg).get(name)
            if value:
                raise ConfigError(
                    f"policy.{key}={value!r}: {type(self).__name__} does not have it; {instead}"
                )

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

    def _save_mode(self, state_dict: Callable[[], State]) -> State:
        shared = {
            "env_statistics": self._env_statistics,
            "own_state": self._own_state.save(self),
        }
        return {**state_dict(), **{k: part for k, part in shared.items() if part is not None}}

    def _load_mode(self, load: Callable[[State], None], state: State) -> None:
        self._env_statistics = state.get("env_statistics")
        state = complete(self._model, state)
        load({k: part for k, part in state.items() if k not in ("env_statistics", "own_state")})
        if "own_state" in state:
            self._own_state.load(self, state["own_state"], adds="learn" in self._enable_field)

    def _get_unsaved_attributes(self) -> list[str]:
        """Attributes of a user's class that states cannot hold, with their types."""
        self._own_state.save(self)
        return self._own_state.unsaved

    def _overrides(self, name: str) -> bool:
        return name in vars(self) or getattr(type(self), name) is not getattr(Policy, name)

    def _has_core(self, core: str, *row_methods: str) -> bool:
        # A subclass that overrides a per-environment method means it to be called.
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

    def sync_gradients(self, model: torch.nn.Module) -> None:
        """Average the gradients of ``model`` over all ranks; nothing at world size 1."""
        if get_world_size() > 1:
            average_gradients([p for p in model.parameters() if p.requires_grad])

    def _broadcast_model(self, model: torch.nn.Module) -> None:
        if get_world_size() > 1:
            for tensor in model.state_dict().values():
                torch.distributed.broadcast(tensor, 0)

    def _init_learn(self) -> None:
        """Set up what training needs: optimiser, target network, hyper-parameters."""

    def _forward_learn(self, data: Samples) -> Any:
        """Update the model from samples: `_learn` from their `_batch`.

        Returns:
            What to log, of one update or of each of several (a list); ``priority`` float32 ``[B]``
            of the samples, if they get new ones.

        Raises:
            DataError: A loss is not finite.
        """
        if not self._overrides("_learn"):
            raise NotImplementedError(f"{type(self).__name__} cannot learn: no _forward_learn")
        batch = self._batch(data)
        if (layout := layout_of(batch)) not in self._layouts:
            # What users make of samples is theirs.
            if type(self)._batch.__module__.startswith("ding."):
                self._check_batch(batch)
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts.add(layout)
        self._train_mode(True)
        log = self._learn(batch)
        if isinstance(log, list):
            return [self._renamed(part) for part in log]
        return self._renamed(log) if isinstance(log, dict) else log

    def _renamed(self, log: Log) -> Log:
        """A log under the names that dashboards know."""
        if self._logs_grad_norm:
            log["grad_norm"] = self._grad_norm
        names = ((self._log_name_of.get(name, name), value) for name, value in log.items())
        return {name: value for name, value in names if name is not None}

    def _check_batch(self, batch: Any) -> None:
        """Refuse a batch whose columns do not go together (`check_samples`)."""
        # A user's network may have a number of agents that the config does not say.
        agents = self._cfg.model.get("agent_num", 0) if self._cfg.get("multi_agent") else None
        if self.data_columns is not None:  # a data set may have others
            used = {*self.data_columns, "weight"}
            batch = {name: column for name, column in batch.items() if name in used}
        check_samples(
            type(self).__name__, batch, self._rewards_per_sample, agents, self._minibatch_columns
        )

    def _learn(self, batch: Any) -> Any:
        """Update the model; returns what `_forward_learn` does."""

    def _batch(self, data: Samples) -> Any:
        """What to learn from samples; see `default_preprocess_learn`."""
        batch = default_preprocess_learn(
            data,
            use_priority_IS_weight=self._priority_IS_weight,
            use_priority=self._priority,
            use_nstep=self._rewards_per_sample is not None,
            ignore_done=self._cfg.learn.ignore_done,
            device=self._device,
        )
        if "action" in batch:
            batch["action"] = self._shaped_action(batch["action"])
        if self._cfg.get("multi_agent"):
            for name in PER_AGENT & batch.keys():
                if batch[name].dim() == 1:  # of a team of one
                    batch[name] = batch[name].unsqueeze(-1)
        return batch

    def _shaped_action(self, action: Action, leading: int = 1) -> Action:
        """Actions of one number: without a dimension of 1 if they are indices, with one if vectors,
        after ``leading`` dimensions."""
        if isinstance(action, Mapping):
            return {name: self._shaped_action(part, leading) for name, part in action.items()}
        if not isinstance(action, torch.Tensor):
            return action  # a list with a tensor for each of several choices
        if not action.is_floating_point():
            return action.squeeze(-1) if action.shape[leading:] == (1,) else action
        # Data sets may hold indices as floats.
        has_indices = self._cfg.get("action_space", self.actions[:1] or "discrete")
        is_vector = action.dim() == leading and "discrete" not in has_indices
        return action.unsqueeze(-1) if is_vector else action

    def _use_priority(self) -> None:
        """Learn from prioritised samples, if the config says so."""
        self._priority = self._cfg.priority
        self._priority_IS_weight = self._cfg.priority_IS_weight
        if self._priority_IS_weight and not self._priority:
            raise ConfigError("policy.priority_IS_weight=True needs policy.priority=True")

    def _follower(self, theta: float) -> Network:
        """A target network that moves by ``theta`` of the way at each update."""
        target = copy.deepcopy(self._model).requires_grad_(False)
        return model_wrap(target, "target", update_type="momentum", update_kwargs={"theta": theta})

    def _weighted(self, losses: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The sum of an actor's losses by the weights in ``learn``; its entropy is to grow.

        Args:
            losses: ``policy_loss`` and ``entropy_loss``; and of those that have one ``value_loss``,
                and ``kl_div`` from a policy that is not to be left.
        """
        cfg, total = self._cfg.learn, losses["policy_loss"]
        if "value_loss" in losses:
            total = total + cfg.value_weight * losses["value_loss"]
        total = total - cfg.entropy_weight * losses["entropy_loss"]
        return total + cfg.kl_beta * losses["kl_div"] if "kl_div" in losses else total

    def _descend(
        self,
        loss: torch.Tensor,
        batch: Mapping[str, object],
        optimizer: torch.optim.Optimizer,
        part: torch.nn.Module | None = None,
        parameters: Sequence[torch.Tensor] | None = None,
    ) -> float:
        """One step of an optimiser down a loss, if that is finite.

        Args:
            part: Whose gradients are averaged over processes; the model's by default.
            parameters: The only ones that get gradients, if given.

        Raises:
            DataError: The loss is not finite; names the columns of ``batch`` that are not.
        """
        check_loss(self, value := loss.item(), batch)
        optimizer.zero_grad()
        if self._joint:
            loss = loss * self._share(batch)
        loss.backward(inputs=parameters)
        if self._joint:
            self.sync_gradients(self._model if part is None else part)
        if self._logs_grad_norm:  # before the optimiser clips them
            self._grad_norm = calculate_grad_norm(self._model)
        optimizer.step()
        return value

    def _share(self, batch: Mapping[str, object]) -> float:
        """What this learner's loss, a mean over its samples, counts among those of all learners."""
        # Their gradients are averaged with equal weights, whatever the sizes of their batches.
        count = self._sample_count(batch)
        return count * get_world_size() / float(allreduce_data(float(count), "sum"))

    def _sample_count(self, batch: Any) -> float:
        """How many samples the mean losses of a batch are taken over."""
        return tree_length(batch["obs"])

    def _reset_learn(self, data_id: list[int] | None = None) -> None:
        """Forget the state of the given data; stateless policies have none."""

    def _monitor_vars_learn(self) -> list[str]:
        return self._declared_numbers() or ["cur_lr", "total_loss"]

    def _declared_numbers(self) -> list[str]:
        """The ``_logged`` of all classes, base classes first."""
        classes = reversed(type(self).__mro__)
        own = [name for cls in classes for name in vars(cls).get("_logged", ())]
        own += ["grad_norm"] * self._logs_grad_norm
        names = dict.fromkeys(self._log_name_of.get(name, name) for name in own)
        return [name for name in names if name is not None]

    def _state_dict_learn(self) -> State:
        state = {"model": self._model.state_dict()}
        target = getattr(self, "_target_model", None)
        if self._saves_target and target is not None:
            count = target.update_count
            state |= {"target_model": target.state_dict(), "target_update_count": count}
        return {**state, **save_state(self, self._learned)}

    def _load_state_dict_learn(self, state_dict: State) -> None:
        self._model.load_state_dict(state_dict["model"])
        target = getattr(self, "_target_model", None)
        if self._saves_target and target is not None:
            # One that holds weights alone: the target starts from them, as at a run's start.
            target.load_state_dict(state_dict.get("target_model", state_dict["model"]))
            target.reset_state(state_dict.get("target_update_count"))
        load_state(self, self._learned, state_dict)

    def _init_collect(self) -> None:
        """Set up what collecting needs: exploration, ``_unroll_len``, ``_gamma``, ``_nstep``."""

    def _forward_collect_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        """Act on a batch, exploring.

        Args:
            obs: float32 ``[n, *obs_shape]`` on the policy's device, or a nested dict of them.
            kwargs: Those of the collector; of a recurrent policy also ``env_ids``, n of them.

        Returns:
            Tensors ``[n, ...]``: ``action`` and the ``_transition_outputs``.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot collect: no _forward_collect")

    @modes.takes_indexed
    def _get_train_columns(self, columns: Arrays, lengths: Lengths) -> Arrays:
        """Turn trajectories into training samples.

        Args:
            columns: Transitions of consecutive trajectories, in time: ``obs, next_obs, action,
                reward`` float32 ``[N]``, ``done`` bool ``[N]`` (terminated), ``collect_iter`` and
                the ``_transition_outputs``.
            lengths: int64 ``[n_traj]``, number of transitions of each trajectory; sums to N.

        Returns:
            The columns of the samples, ``reward`` as ``[N, nstep]``.
        """
        return {**columns, "reward": columns["reward"][:, None]}

    def _cuts_samples(self) -> bool:
        """Whether samples are what `_get_train_columns` makes: it counts them, or one is a step."""
        return self._get_unroll_len() == 1 or self._overrides("_count_train_samples")

    def _count_train_samples(self, lengths: np.ndarray) -> np.ndarray:
        """How many samples `_get_train_columns` makes of each trajectory."""
        return lengths

    def _collect_columns(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        return self._acted("collecting", self._forward_collect_batch, obs, *args, **kwargs)

    def _acted(
        self, doing: str, core: Callable[..., Output], obs: Obs, *args: Any, **kwargs: Any
    ) -> Output:
        """Outputs of a batched core for observations, on the CPU."""
        try:
            with torch.no_grad():
                output = core(self._model_input(obs), *args, **kwargs)
        except DataError as error:
            raise DataError(f"{type(self).__name__}, {doing}: {error}") from error
        except (TypeError, AttributeError) as error:
            if isinstance(obs, np.ndarray) or not type(self._model).__module__.startswith("ding."):
                raise
            raise DataError(
                f"{type(self).__name__}, {doing}: the network takes observations that are one "
                f"array, and the environments' are {brief(obs)}; env.env_wrapper=['flatten_obs'] "
                f"makes one of several ({error})"
            ) from error
        if not self._cuda:
            return output
        return {name: tree_map(lambda leaf: leaf.cpu(), value) for name, value in output.items()}

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        """Forget the state of the given environments; stateless policies have none."""

    def _state_dict_collect(self) -> State:
        return {"model": self._model.state_dict(), **save_state(self, self._acted_with)}

    def _load_state_dict_collect(self, state_dict: State) -> None:
        self._model.load_state_dict(state_dict["model"], strict=True)
        load_state(self, self._acted_with, state_dict)

    def _init_eval(self) -> None:
        """Set up what evaluation needs: a greedy wrapper of the model."""

    def _forward_eval_batch(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        """Act on a batch, greedily; arguments as of `_forward_collect_batch`."""
        raise NotImplementedError(f"{type(self).__name__} cannot evaluate: no _forward_eval")

    def _eval_columns(self, obs: Obs, *args: Any, **kwargs: Any) -> Output:
        return self._acted("evaluating", self._forward_eval_batch, obs, *args, **kwargs)

    def _reset_eval(self, data_id: list[int] | None = None) -> None:
        """Forget the state of the given environments; stateless policies have none."""

    def _state_dict_eval(self) -> State:
        return {"model": self._model.state_dict()}

    def _load_state_dict_eval(self, state_dict: State) -> None:
        self._model.load_state_dict(state_dict["model"], strict=True)

    def _train_mode(self, training: bool) -> None:
        """Switch the model, if it is not there yet: walking all layers each time costs."""
        if self._model.training is not training:
            set_training(self._model, training)

    def _model_input(self, obs: Obs) -> Obs:
        def convert(leaf: Tree) -> torch.Tensor:
            tensor = torch.from_numpy(leaf) if isinstance(leaf, np.ndarray) else leaf
            return tensor.to(self._device, torch.float32)

        return convert(obs) if isinstance(obs, np.ndarray) else tree_map(convert, obs)


class CommandModePolicy(Policy):
    """A policy that also sends its settings to the pipeline: exploration, learning, evaluation."""

    total_field = frozenset({"learn", "collect", "eval", "command"})

    @property
    def command_mode(self) -> modes.command_function:
        """Settings of the other modes that change during a run; see `modes.command_function`."""
        return CommandModePolicy.command_function(
            self._get_setting_learn, self._get_setting_collect, self._get_setting_eval
        )

    def _init_command(self) -> None:
        """Set up what the settings depend on, such as the ε schedule."""

    def _get_setting_learn(self, command_info: Settings) -> Settings:
        return {}

    def _get_setting_collect(self, command_info: Settings) -> Settings:
        return {}

    def _get_setting_eval(self, command_info: Settings) -> Settings:
        return {}


def create_policy(cfg: Mapping[str, Any], **kwargs: Any) -> Policy:
    """Build the registered policy ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The policy's ``type``, and those of its keys that are not the defaults.
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
