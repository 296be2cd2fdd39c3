"""Hooks around a learner's iterations (load, save, log), and the interfaces that they use."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeAlias

import torch
from easydict import EasyDict

from ding.torch_utils import to_device
from ding.utils import allreduce, get_world_size, read_file, remove_file, save_file
from ding.utils.errors import CheckpointError, CheckpointWriteError, ConfigError, mismatch
from ding.utils.file_helper import names_by_age
from ding.utils.types import State

#: Values logged by an update, by name: numbers, tensors or lists; priorities under ``priority``.
LogVars: TypeAlias = dict[str, Any]
#: Argument of a policy's ``forward``: rows, ``Columns``, or any type that a custom policy expects.
TrainData: TypeAlias = Any
#: A `BaseLearner`, or another object that calls hooks and has the attributes that they use.
Engine: TypeAlias = Any

POSITIONS = ("before_run", "after_run", "before_iter", "after_iter")


class Rewards(Protocol):
    """A reward model; `checkpoint` returns its part of a policy's checkpoint."""

    def state_dict(self) -> State: ...
    def load_state_dict(self, state_dict: State) -> None: ...
    def checkpoint(self) -> State: ...


class LearnMode(Protocol):
    """A policy's learn mode: ``policy.learn_mode``."""

    def forward(self, data: TrainData, **kwargs: object) -> LogVars | list[LogVars | None] | None:
        """Update once, or several times and return a list of logs."""

    def monitor_vars(self) -> list[str]:
        """Names of logged values to be plotted."""

    def info(self) -> str: ...
    def get_attribute(self, name: str) -> Any: ...
    def set_attribute(self, name: str, value: object) -> None: ...
    def reset(self, data_id: list[int] | None = None) -> None: ...
    def state_dict(self) -> State: ...
    def load_state_dict(self, state_dict: State) -> None: ...


class Hook(ABC):
    """A callable for a fixed position.

    Hooks with lower ``priority`` run first; equal ones in the order of registration.
    """

    def __init__(self, name: str, priority: float, **kwargs: object) -> None:
        self._name = name
        if priority < 0:
            raise ConfigError(f"hook {name!r}: priority must be >= 0, got {priority}")
        self._priority = priority

    @property
    def name(self) -> str:
        """Name by which configs refer to the hook."""
        return self._name

    @property
    def priority(self) -> float:
        """Order among the hooks of a position: lower values run first."""
        return self._priority

    @abstractmethod
    def __call__(self, engine: Any) -> object:
        """Called at the hook's position; ``engine`` is the caller."""


class LearnerHook(Hook):
    """Base class of a learner's hooks: override ``__call__(engine)``.

    Args:
        name: Name by which configs refer to it.
        priority: Hooks with lower values run first; at least 0.
        position: ``before_run``, ``after_run``, ``before_iter`` or ``after_iter``.
        ext_args: Arguments of the hook class.

    Example:

        >>> from ding.worker import LearnerHook
        >>> class CountUpdates(LearnerHook):
        ...     def __call__(self, engine):  # the learner
        ...         print(engine.last_iter.val)
        >>> hook = CountUpdates("count", priority=30, position="after_iter")  # for register_hook
    """

    def __init__(
        self,
        name: str,
        priority: float,
        *,
        position: str,
        ext_args: Mapping[str, Any] = EasyDict(),
        **kwargs: object,
    ) -> None:
        super().__init__(name, priority, **kwargs)
        self._ext_args = dict(ext_args)
        if position not in POSITIONS:
            raise ConfigError(f"hook {self.name!r}: position must be one of {POSITIONS}, "
                              f"got {position!r}")  # fmt: skip
        self._position = position

    @property
    def position(self) -> str:
        """When it runs: ``before_run``, ``after_run``, ``before_iter`` or ``after_iter``."""
        return self._position

    def _is_due(self, engine: Engine) -> bool:
        freq = self._ext_args.get("freq", 1)
        return bool(freq) and engine.last_iter.val % freq == 0


class LoadCkptHook(LearnerHook):
    """Loads ``ext_args.load_path`` into policy and counters; does nothing if the path is empty."""

    def __call__(self, engine: Engine) -> None:
        path = self._ext_args.get("load_path")
        if not path:
            return
        state = read_file(path)
        if not isinstance(state, dict):
            raise CheckpointError(f"{path} holds a {type(state).__name__}, not a policy's state")
        last_iter, last_step = state.pop("last_iter", 0), state.pop("last_step", 0)
        state.pop("eval_result", None)
        rewards = state.pop("reward_model", None)
        try:
            engine.policy.load_state_dict(state)
            if rewards is not None and engine.reward_model is not None:
                engine.reward_model.load_state_dict(rewards)
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(
                f"{path} does not fit this policy: {mismatch(error)}. Was it saved with another "
                "model or policy type?"
            ) from error
        engine.last_iter.update(last_iter)
        engine.collector_envstep = last_step
        engine.info(f"{engine.instance_name} loaded {path}, iteration {last_iter}")


class SaveCkptHook(LearnerHook):
    """Saves policy and counters to ``<exp_name>/ckpt/``.

    A failed write is a warning after an iteration, and an error at other positions.

    Args:
        ext_args: ``freq``, iterations between two files (for ``after_iter``), 0 for never;
            ``keep``, the number of newest numbered files to keep, 0 for all.
    """

    def __call__(self, engine: Engine) -> None:
        if engine.rank != 0 or not self._is_due(engine):
            return
        folder = os.path.join(".", engine.exp_name, "ckpt")
        prefix = getattr(engine, "ckpt_prefix", "")
        name = engine.ckpt_name or f"{prefix}iteration_{engine.last_iter.val}.pth.tar"
        path = os.path.join(folder, name)
        try:
            save_file(path, to_device(checkpoint_state(engine), "cpu"))
            engine.info(f"{engine.instance_name} saved {path}")
            if keep := self._ext_args.get("keep"):
                # By age, not number: a run resumed from an earlier checkpoint reuses numbers.
                names = names_by_age(folder)
                own = re.compile(re.escape(prefix) + r"iteration_\d+\.pth\.tar")
                numbered = list(filter(own.fullmatch, names))
                for old in numbered[:-keep]:
                    remove_file(os.path.join(folder, old))
        except CheckpointWriteError as error:
            # The next save may succeed, and a full disk must not end days of training; the final
            # checkpoint has no next save.
            if self.position != "after_iter":
                raise
            engine.logger.warning("%s; training continues", error)
        else:
            on_checkpoint = getattr(engine, "on_checkpoint", None)
            if on_checkpoint is not None:
                on_checkpoint(path)


def checkpoint_state(engine: Engine) -> State:
    """The policy's state, ``last_iter``, ``last_step``, optionally ``reward_model``, and
    ``eval_result`` if an evaluation caused the checkpoint."""
    rewards = getattr(engine, "reward_model", None)
    return {
        **engine.policy.state_dict(),
        **({} if rewards is None else {"reward_model": rewards.checkpoint()}),
        "last_iter": engine.last_iter.val,
        "last_step": engine.collector_envstep,
        **getattr(engine, "checkpoint_facts", {}),
    }


class LogShowHook(LearnerHook):
    """Writes the monitor's averages every ``ext_args.freq`` iterations, 0 for never."""

    def __call__(self, engine: Engine) -> None:
        if engine.rank == 0 or not engine.only_monitor_rank0:
            engine.update_monitor()
            if self._is_due(engine):
                engine.log_monitor()
        # On every rank, also if it does not log: `log_reduce` must not average older updates.
        for buffer in engine.log_buffer.values():
            buffer.clear()


class LogReduceHook(LearnerHook):
    """Averages this iteration's log over all ranks."""

    def __call__(self, engine: Engine) -> None:
        if get_world_size() > 1:
            for name, buffer in engine.log_buffer.items():
                engine.log_buffer[name] = {key: _mean(value) for key, value in buffer.items()}


def _mean(value: object) -> object:
    if isinstance(value, dict):
        return {key: _mean(item) for key, item in value.items()}
    if isinstance(value, bool) or not isinstance(value, int | float | torch.Tensor):
        return value
    tensor = torch.as_tensor(value, dtype=torch.float64).clone()
    allreduce(tensor)
    return tensor.item() if tensor.numel() == 1 else tensor


hook_mapping: dict[str, type[LearnerHook]] = {
    "load_ckpt": LoadCkptHook,
    "save_ckpt": SaveCkptHook,
    "log_show": LogShowHook,
    "log_reduce": LogReduceHook,
}

#: The value of a hook's short form in a config: a path, a number or a flag.
Value: TypeAlias = str | int | bool | None


def _short(kind: str, name: str, position: str, arg: str, value: Value) -> LearnerHook:
    # Averaging over ranks comes before the hooks that show averages.
    priority = 10 if kind == "log_reduce" else 20
    ext_args = EasyDict({arg: value} if arg else {})
    return hook_mapping[kind](name, priority, position=position, ext_args=ext_args)


#: The short forms: a function for each config key that builds the hook from the key's value.
#: ``False`` and empty values also build a hook, which does nothing (no path, or a frequency of 0).
simplified_hook_mapping: dict[str, Callable[[Value], LearnerHook]] = {
    f"{kind}_{position}": partial(_short, kind, name, position, arg)
    for kind, name, position, arg in (
        ("load_ckpt", "load_ckpt", "before_run", "load_path"),
        ("log_show", "log_show", "after_iter", "freq"),
        ("save_ckpt", "save_ckpt_after_iter", "after_iter", "freq"),
        ("save_ckpt", "save_ckpt_after_run", "after_run", ""),
        ("log_reduce", "log_reduce_after_iter", "after_iter", ""),
    )
}


def register_learner_hook(name: str, hook_type: type[LearnerHook]) -> None:
    """Register a hook class under a name, for ``type`` in hook configs.

    Args:
        name: The name.
        hook_type: The class.

    Raises:
        ConfigError: Not a subclass of `LearnerHook`.

    Example:

        >>> from ding.worker.learner import LearnerHook, register_learner_hook
        >>> class CountUpdates(LearnerHook):
        ...     def __call__(self, engine):
        ...         print(engine.last_iter.val)
        >>> register_learner_hook("count_updates", CountUpdates)
    """
    if not (isinstance(hook_type, type) and issubclass(hook_type, LearnerHook)):
        raise ConfigError(f"hook {name!r} must be a subclass of LearnerHook, got {hook_type!r}")
    hook_mapping[name] = hook_type


def find_char(s: str, flag: str, num: int, reverse: bool = False) -> int:
    """Index of the ``num``-th ``flag`` in ``s``, counted from the right if ``reverse``.

    Raises:
        ValueError: ``s`` holds fewer.
    """
    places = [match.start() for match in re.finditer(re.escape(flag), s)]
    if not 1 <= num <= len(places):
        raise ValueError(f"{s!r} holds {flag!r} {len(places)} times, asked for number {num}")
    return places[-num] if reverse else places[num - 1]


def build_learner_hook_by_cfg(cfg: EasyDict) -> dict[str, list[Hook]]:
    """Build hooks from their config.

    Args:
        cfg: By hook name, either a full description (``type, position`` and optionally ``name``,
            ``priority`` (100) and ``ext_args``), or the value of a short form:
            ``load_ckpt_before_run`` (path), ``save_ckpt_after_iter`` and ``log_show_after_iter``
            (iterations between two), ``save_ckpt_after_run`` and ``log_reduce_after_iter``.
            ``keep_ckpt`` is the number of numbered checkpoints to keep.

    Returns:
        Hooks by position, lowest priority value first.

    Raises:
        ConfigError: A name is not a short form and has no full description, or an unknown type.
    """
    hooks: dict[str, list[Hook]] = {position: [] for position in POSITIONS}
    for name, value in cfg.items():
        if name == "keep_ckpt":
            continue
        if isinstance(value, dict):
            kind, known = value.get("type"), sorted(hook_mapping)
            if kind not in hook_mapping:
                raise ConfigError(f"hook {name!r}: unknown type {kind!r}, known are {known}")
            rest = {"name": name, "priority": 100, "ext_args": {}, **value}
            del rest["type"]
            rest["ext_args"] = EasyDict(rest["ext_args"])
            add_learner_hook(hooks, hook_mapping[kind](**rest))
        elif name in simplified_hook_mapping:
            hook = simplified_hook_mapping[name](value)
            if isinstance(hook, SaveCkptHook):
                hook._ext_args["keep"] = cfg.get("keep_ckpt", 0)
            add_learner_hook(hooks, hook)
        else:
            raise ConfigError(
                f"unknown hook {name!r} = {value!r}: expected one of "
                f"{sorted(simplified_hook_mapping)}, or a dict with type, priority, position and "
                "ext_args"
            )
    return hooks


def add_learner_hook(hooks: dict[str, list[Hook]], hook: LearnerHook) -> None:
    """Insert a hook after all hooks with the same or a lower priority value."""
    place = hooks.setdefault(hook.position, [])
    place.append(hook)
    place.sort(key=lambda item: item.priority)


def merge_hooks(
    hooks1: dict[str, list[Hook]], hooks2: dict[str, list[Hook]]
) -> dict[str, list[Hook]]:
    """Merge the hooks of each position; at equal priority, those of ``hooks1`` come first.

    Raises:
        ConfigError: The positions differ.
    """
    if set(hooks1) != set(hooks2):
        raise ConfigError(f"hooks have different positions: {sorted(hooks1)}, {sorted(hooks2)}")
    return {
        position: sorted(hooks1[position] + hooks2[position], key=lambda item: item.priority)
        for position in hooks1
    }


def show_hooks(hooks: dict[str, list[Hook]]) -> None:
    """Print each position's hooks in call order."""
    for position, place in hooks.items():
        names = ", ".join(f"{hook.name}({hook.priority})" for hook in place)
        print(f"{position}: {names or '-'}")
