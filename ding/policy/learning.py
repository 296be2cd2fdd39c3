"""The learn mode of policies: from samples to a batch, an optimiser step and a log."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from ding.data import tree_length
from ding.model import model_wrap
from ding.policy._types import Action, Log, Network, Samples
from ding.policy.checks import PER_AGENT, check_loss, check_samples, layout_of
from ding.policy.common_utils import default_preprocess_learn
from ding.policy.network_owner import NetworkOwner
from ding.torch_utils.gradients import average_gradients
from ding.torch_utils.optimizer_helper import calculate_grad_norm
from ding.utils import allreduce_data, get_world_size
from ding.utils.errors import ConfigError

#: Maximum number of batch layouts cached as valid.
_MOST_LAYOUTS = 64


class Learning(NetworkOwner):
    """The learn mode of a policy: subclasses define `_init_learn` and `_learn`."""

    #: Names of the `_forward_learn` results to log, in addition to those of the base classes; if no
    #: class defines any, all numbers are logged.
    _logged: tuple[str, ...] = ()

    #: Log names that differ from the names in code, in addition to those of the base classes;
    #: ``None`` for values that are not logged. Dashboards use these names.
    _log_names: Mapping[str, str | None] = {}
    #: `_log_names` of the class and all its base classes.
    _log_name_of: Mapping[str, str | None] = {}
    #: Whether the gradient norm is logged, as ``grad_norm``.
    _logs_grad_norm = False
    _grad_norm = 0.0

    #: Columns of a data set that the policy learns from; ``None`` if unknown.
    data_columns: tuple[str, ...] | None = None

    #: Columns of a minibatch, as far as samples have them.
    _minibatch_columns: tuple[str, ...] = ()

    #: Whether to use priorities of samples, and importance weights.
    _priority = _priority_IS_weight = False

    #: Number of rewards in a sample if ``reward`` is ``[nstep, B]``; None if it is ``[B]``.
    _rewards_per_sample: int | None = None

    #: Supported kinds of actions, of `ding.policy.fit.KINDS`; empty if undeclared.
    actions: tuple[str, ...] = ()
    #: Layouts of batches that were found valid.
    _layouts: set[object]
    #: Whether several learners train this policy together on their joint batch.
    _joint: bool
    _train_mode: Callable[[bool], None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tables = [vars(one).get("_log_names", {}) for one in reversed(cls.__mro__)]
        cls._log_name_of = {name: shown for table in tables for name, shown in table.items()}

    def sync_gradients(self, model: torch.nn.Module) -> None:
        """Average the gradients of ``model`` over all ranks; no-op at world size 1."""
        if get_world_size() > 1:
            average_gradients([p for p in model.parameters() if p.requires_grad])

    def _broadcast_model(self, model: torch.nn.Module) -> None:
        if get_world_size() > 1:
            for tensor in model.state_dict().values():
                torch.distributed.broadcast(tensor, 0)

    def _init_learn(self) -> None:
        """Set up what training needs: optimiser, target network, hyper-parameters."""

    def _forward_learn(self, data: Samples) -> Any:
        """Update the model: calls `_batch` on samples, and `_learn` on the result.

        Returns:
            The log of one update, or a list with one log per update; ``priority`` float32 ``[B]``
            if samples get new priorities.

        Raises:
            DataError: A loss is not finite.
        """
        if type(self)._learn is Learning._learn and "_learn" not in vars(self):
            raise NotImplementedError(f"{type(self).__name__} cannot learn: no _forward_learn")
        batch = self._batch(data)
        if (layout := layout_of(batch)) not in self._layouts:
            # Custom batches are not checked.
            if type(self)._batch.__module__.startswith("ding."):
                self._check_batch(batch)
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts.add(layout)
        # The same network acts, which has switched it to evaluation mode.
        self._train_mode(True)
        log = self._learn(batch)
        if isinstance(log, list):
            return [self._renamed(part) for part in log]
        return self._renamed(log) if isinstance(log, dict) else log

    def _renamed(self, log: Log) -> Log:
        """A log with the names that dashboards use."""
        if self._logs_grad_norm:
            log["grad_norm"] = self._grad_norm
        if not self._log_name_of:
            return log
        names = ((self._log_name_of.get(name, name), value) for name, value in log.items())
        return {name: value for name, value in names if name is not None}

    def _check_batch(self, batch: Any) -> None:
        """Reject a batch whose columns have inconsistent shapes (`check_samples`)."""
        # A custom network may have a number of agents that the config does not contain.
        agents = self._cfg.model.get("agent_num", 0) if self._cfg.get("multi_agent") else None
        if self.data_columns is not None:  # a data set may have other columns
            used = {*self.data_columns, "weight"}
            batch = {name: column for name, column in batch.items() if name in used}
        check_samples(
            type(self).__name__, batch, self._rewards_per_sample, agents, self._minibatch_columns
        )

    def _learn(self, batch: Any) -> Any:
        """Update the model; returns the same as `_forward_learn`."""

    def _batch(self, data: Samples) -> Any:
        """Convert samples to a batch; see `default_preprocess_learn`."""
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
                if batch[name].dim() == 1:  # from a team of one agent
                    batch[name] = batch[name].unsqueeze(-1)
        return batch

    def _shaped_action(self, action: Action, leading: int = 1) -> Action:
        """Convert vectors to float32. After ``leading`` dimensions, indices of one number have
        no dimension of size 1, and vector actions have one."""
        if isinstance(action, Mapping):
            return {name: self._shaped_action(part, leading) for name, part in action.items()}
        if not isinstance(action, torch.Tensor):
            return action  # a list with one tensor per choice
        if not action.is_floating_point():
            return action.squeeze(-1) if action.shape[leading:] == (1,) else action
        # Custom rows from numpy are in double precision, which torch's layers reject.
        action = action.float()
        # Data sets may contain indices as floats.
        has_indices = self._cfg.get("action_space", self.actions[:1] or "discrete")
        is_vector = action.dim() == leading and "discrete" not in has_indices
        return action.unsqueeze(-1) if is_vector else action

    def _use_priority(self) -> None:
        """Enable prioritised samples if the config asks for them."""
        self._priority = self._cfg.priority
        self._priority_IS_weight = self._cfg.priority_IS_weight
        if self._priority_IS_weight and not self._priority:
            raise ConfigError("policy.priority_IS_weight=True needs policy.priority=True")

    def _descend(
        self,
        loss: torch.Tensor,
        batch: Mapping[str, object],
        optimizer: torch.optim.Optimizer,
        part: torch.nn.Module | None = None,
        parameters: Sequence[torch.Tensor] | None = None,
    ) -> float:
        """Minimise a finite loss by one optimiser step; skipped if all parameters are frozen.

        Args:
            part: Module whose gradients are averaged over processes; the model by default.
            parameters: If given, only these get gradients.

        Raises:
            DataError: The loss is not finite; names the columns of ``batch`` that are not.
        """
        # Checked first: a step with such a loss would make all weights NaN.
        check_loss(self, value := loss.item(), batch)
        optimizer.zero_grad()
        if parameters is not None:  # torch rejects frozen ones
            parameters = [one for one in parameters if one.requires_grad]
        if parameters == [] or not loss.requires_grad:
            return value
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
        """Weight of this learner's mean loss, relative to the mean over all learners."""
        # Gradients are averaged with equal weights, whatever the batch sizes.
        count = self._sample_count(batch)
        return count * get_world_size() / float(allreduce_data(float(count), "sum"))

    def _sample_count(self, batch: Any) -> float:
        """Number of samples over which a batch's losses are averaged."""
        return tree_length(batch["obs"])

    def _reset_learn(self, data_id: list[int] | None = None) -> None:
        """Clear the state of the given data; stateless policies have none."""

    def _monitor_vars_learn(self) -> list[str]:
        return self._declared_numbers() or ["cur_lr", "total_loss"]

    def _declared_numbers(self) -> list[str]:
        """`_logged` of all classes, base classes first."""
        own = self._logged_by(reversed(type(self).__mro__)) + ["grad_norm"] * self._logs_grad_norm
        names = dict.fromkeys(self._log_name_of.get(name, name) for name in own)
        return [name for name in names if name is not None]

    @staticmethod
    def _logged_by(classes: Iterable[type]) -> list[str]:
        return [name for cls in classes for name in vars(cls).get("_logged", ())]

    def logs_every_number(self) -> bool:
        """Whether all numbers of an update are logged: if no class declares names, and for custom
        subclasses unless they define `_monitor_vars_learn`."""
        if not _is_of_package(type(self)._monitor_vars_learn):
            return False
        return not all(map(_is_of_package, self._kinds())) or not self._declared_numbers()

    def usual_numbers(self) -> frozenset[str]:
        """Names logged by this package's classes; custom subclasses may log more."""
        users = [kind for kind in self._kinds() if not _is_of_package(kind)]
        built_in = next(kind for kind in self._kinds() if not {*users} & {*kind.__mro__})
        declared = {*built_in._monitor_vars_learn(self)} - {*self._logged_by(users)}
        return frozenset({"cur_lr", "total_loss", *declared})

    def _kinds(self) -> list[type["Learning"]]:
        return [kind for kind in type(self).__mro__ if issubclass(kind, Learning)]


def _is_of_package(part: type | Callable[..., object]) -> bool:
    return part.__module__.startswith("ding.")


def follower(model: torch.nn.Module, theta: float | None, freq: int | None = None) -> Network:
    """Create a target network: updated by the rate ``theta``, or copied every ``freq`` updates."""
    if theta is None and freq is None:
        raise ConfigError(
            "the target network never follows: set policy.learn.target_update_freq (updates "
            "between copies) or policy.learn.target_theta (how far to move at each update)"
        )
    # Without gradients: a custom optimiser over all parameters must not train it.
    target = copy.deepcopy(model).requires_grad_(False)
    if freq is not None:
        return model_wrap(target, "target", update_type="assign", update_kwargs={"freq": freq})
    return model_wrap(target, "target", update_type="momentum", update_kwargs={"theta": theta})


def weighted_sum(losses: Mapping[str, torch.Tensor], cfg: Mapping[str, float]) -> torch.Tensor:
    """Sum an actor's losses with the weights of ``policy.learn``; the entropy is maximised.

    Args:
        losses: ``policy_loss`` and ``entropy_loss``; optionally ``value_loss``, and ``kl_div``, the
            divergence from a reference policy.
    """
    total = losses["policy_loss"]
    if "value_loss" in losses:
        total = total + cfg["value_weight"] * losses["value_loss"]
    total = total - cfg["entropy_weight"] * losses["entropy_loss"]
    return total + cfg["kl_beta"] * losses["kl_div"] if "kl_div" in losses else total
