"""How a policy learns: from samples to a batch, to a step down a loss, to its log."""

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

#: Layouts of batches that are remembered as right.
_MOST_LAYOUTS = 64


class Learning(NetworkOwner):
    """The learn mode of a policy: subclasses define `_init_learn` and `_learn`."""

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

    #: What minibatches hold of the samples, where samples have it.
    _minibatch_columns: tuple[str, ...] = ()

    #: Whether to learn with the priorities of samples, and their importance weights.
    _priority = _priority_IS_weight = False

    #: How many rewards a sample has, if its column is ``[nstep, B]``; None if it is ``[B]``.
    _rewards_per_sample: int | None = None

    #: Actions that it can choose, of `ding.policy.fit.KINDS`; empty if undeclared.
    actions: tuple[str, ...] = ()
    #: Layouts of batches that have been found right.
    _layouts: set[object]
    #: Whether several learners train this policy together, as one with their joint batch.
    _joint: bool
    _train_mode: Callable[[bool], None]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tables = [vars(one).get("_log_names", {}) for one in reversed(cls.__mro__)]
        cls._log_name_of = {name: shown for table in tables for name, shown in table.items()}

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
        if type(self)._learn is Learning._learn and "_learn" not in vars(self):
            raise NotImplementedError(f"{type(self).__name__} cannot learn: no _forward_learn")
        batch = self._batch(data)
        if (layout := layout_of(batch)) not in self._layouts:
            # What users make of samples is theirs.
            if type(self)._batch.__module__.startswith("ding."):
                self._check_batch(batch)
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts.add(layout)
        # The same network acts, and acting has switched it to evaluation mode.
        self._train_mode(True)
        log = self._learn(batch)
        if isinstance(log, list):
            return [self._renamed(part) for part in log]
        return self._renamed(log) if isinstance(log, dict) else log

    def _renamed(self, log: Log) -> Log:
        """A log under the names that dashboards know."""
        if self._logs_grad_norm:
            log["grad_norm"] = self._grad_norm
        if not self._log_name_of:
            return log
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
        """Vectors as float32; actions of one number without a dimension of 1 if they are indices,
        with one if vectors, after ``leading`` dimensions."""
        if isinstance(action, Mapping):
            return {name: self._shaped_action(part, leading) for name, part in action.items()}
        if not isinstance(action, torch.Tensor):
            return action  # a list with a tensor for each of several choices
        if not action.is_floating_point():
            return action.squeeze(-1) if action.shape[leading:] == (1,) else action
        # Rows that users write with numpy are in double precision, which torch's layers refuse.
        action = action.float()
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

    def _descend(
        self,
        loss: torch.Tensor,
        batch: Mapping[str, object],
        optimizer: torch.optim.Optimizer,
        part: torch.nn.Module | None = None,
        parameters: Sequence[torch.Tensor] | None = None,
    ) -> float:
        """One step of an optimiser down a loss, if that is finite; none if all is frozen that it is
        to move.

        Args:
            part: Whose gradients are averaged over processes; the model's by default.
            parameters: The only ones that get gradients, if given.

        Raises:
            DataError: The loss is not finite; names the columns of ``batch`` that are not.
        """
        # Before anything changes: a step down such a loss would make all weights NaN.
        check_loss(self, value := loss.item(), batch)
        optimizer.zero_grad()
        if parameters is not None:  # torch refuses those that are frozen
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
        own = self._logged_by(reversed(type(self).__mro__)) + ["grad_norm"] * self._logs_grad_norm
        names = dict.fromkeys(self._log_name_of.get(name, name) for name in own)
        return [name for name in names if name is not None]

    @staticmethod
    def _logged_by(classes: Iterable[type]) -> list[str]:
        return [name for cls in classes for name in vars(cls).get("_logged", ())]

    def logs_every_number(self) -> bool:
        """Whether all numbers of an update are logged: of a class that says nothing of them, and of
        users' subclasses unless they define `_monitor_vars_learn`."""
        if not _is_of_package(type(self)._monitor_vars_learn):
            return False
        return not all(map(_is_of_package, self._kinds())) or not self._declared_numbers()

    def usual_numbers(self) -> frozenset[str]:
        """Names in the log of what this package's classes log; users' subclasses may have more."""
        users = [kind for kind in self._kinds() if not _is_of_package(kind)]
        built_in = next(kind for kind in self._kinds() if not {*users} & {*kind.__mro__})
        declared = {*built_in._monitor_vars_learn(self)} - {*self._logged_by(users)}
        return frozenset({"cur_lr", "total_loss", *declared})

    def _kinds(self) -> list[type["Learning"]]:
        return [kind for kind in type(self).__mro__ if issubclass(kind, Learning)]


def _is_of_package(part: type | Callable[..., object]) -> bool:
    return part.__module__.startswith("ding.")


def follower(model: torch.nn.Module, theta: float | None, freq: int | None = None) -> Network:
    """A target network: moves by ``theta`` to the model, or is copied every ``freq`` updates."""
    if theta is None and freq is None:
        raise ConfigError(
            "the target network never follows: set policy.learn.target_update_freq (updates "
            "between copies) or policy.learn.target_theta (how far to move at each update)"
        )
    # Without gradients, or the optimiser of a user who passes all parameters would train it.
    target = copy.deepcopy(model).requires_grad_(False)
    if freq is not None:
        return model_wrap(target, "target", update_type="assign", update_kwargs={"freq": freq})
    return model_wrap(target, "target", update_type="momentum", update_kwargs={"theta": theta})


def weighted_sum(losses: Mapping[str, torch.Tensor], cfg: Mapping[str, float]) -> torch.Tensor:
    """The sum of an actor's losses by the weights in ``policy.learn``; its entropy is to grow.

    Args:
        losses: ``policy_loss`` and ``entropy_loss``; and of those that have one ``value_loss``,
            and ``kl_div`` from a policy that is not to be left.
    """
    total = losses["policy_loss"]
    if "value_loss" in losses:
        total = total + cfg["value_weight"] * losses["value_loss"]
    total = total - cfg["entropy_weight"] * losses["entropy_loss"]
    return total + cfg["kl_beta"] * losses["kl_div"] if "kl_div" in losses else total
