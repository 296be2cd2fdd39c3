"""What a learner does around its iterations: load, save, log."""

import glob
import os
import re
from abc import ABC, abstractmethod
from typing import Any

import torch
from easydict import EasyDict

from ding.torch_utils import to_device
from ding.utils import allreduce, get_world_size, read_file, remove_file, save_file
from ding.utils.errors import CheckpointError, CheckpointWriteError, ConfigError

POSITIONS = ("before_run", "after_run", "before_iter", "after_iter")


class Hook(ABC):
    """Something to call at a fixed place.

    Args:
        name: Unique name of the hook.
        priority: Hooks of lower value run first; equal ones in the order in which they were added.
    """

    def __init__(self, name: str, priority: float, **kwargs: Any) -> None:
        self._name = name
        if priority < 0:
            raise ConfigError(f"hook {name!r}: priority must be >= 0, got {priority}")
        self._priority = priority

    @property
    def name(self) -> str:
        return self._name

    @property
    def priority(self) -> float:
        return self._priority

    @abstractmethod
    def __call__(self, engine: Any) -> Any:
        """Do it; ``engine`` is whoever calls."""


class LearnerHook(Hook):
    """A hook of a learner.

    Args:
        position: When it is called: ``before_run``, ``after_run``, ``before_iter`` or
            ``after_iter``.
    """

    def __init__(self, *args: Any, position: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if position not in POSITIONS:
            raise ConfigError(f"hook {self.name!r}: position must be one of {POSITIONS}, "
                              f"got {position!r}")  # fmt: skip
        self._position = position

    @property
    def position(self) -> str:
        return self._position


class LoadCkptHook(LearnerHook):
    """Loads ``ext_args.load_path`` into policy and counters; nothing when the path is empty."""

    def __init__(self, *args: Any, ext_args: EasyDict = EasyDict(), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_path = ext_args.get("load_path", "")

    def __call__(self, engine: Any) -> None:
        if not self._load_path:
            return
        state = read_file(self._load_path)
        if not isinstance(state, dict):
            raise CheckpointError(
                f"{self._load_path} holds a {type(state).__name__}, not a policy's state"
            )
        last_iter, last_step = state.pop("last_iter", 0), state.pop("last_step", 0)
        state.pop("eval_result", None)
        try:
            engine.policy.load_state_dict(state)
        except (KeyError, RuntimeError, ValueError) as error:
            raise CheckpointError(
                f"{self._load_path} does not fit this policy: {error}. Was it saved with another "
                "model or policy type?"
            ) from error
        engine.last_iter.update(last_iter)
        engine.collector_envstep = last_step
        engine.info(f"{engine.instance_name} loaded {self._load_path}, iteration {last_iter}")


class SaveCkptHook(LearnerHook):
    """Saves policy and counters to ``<exp_name>/ckpt/``.

    Args:
        ext_args: ``freq``, iterations between two files (for ``after_iter``); ``keep``, how many
            of the numbered files stay, the newest (all when it is 0).

    Between iterations a file that cannot be written is a warning, and training goes on; anywhere
    else it is an error.
    """

    def __init__(self, *args: Any, ext_args: EasyDict = EasyDict(), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("freq", 1)
        self._keep = ext_args.get("keep", 0)

    def __call__(self, engine: Any) -> None:
        if engine.rank != 0 or engine.last_iter.val % self._freq != 0:
            return
        folder = os.path.join(".", engine.exp_name, "ckpt")
        name = engine.ckpt_name or f"iteration_{engine.last_iter.val}.pth.tar"
        path = os.path.join(folder, name)
        try:
            save_file(path, to_device(checkpoint_state(engine), "cpu"))
            engine.info(f"{engine.instance_name} saved {path}")
            if self._keep:
                self._prune(folder)
        except CheckpointWriteError as error:
            if self.position != "after_iter":
                raise
            engine.logger.warning("%s; training goes on", error)

    def _prune(self, folder: str) -> None:
        numbered = []
        for path in glob.glob(os.path.join(glob.escape(folder), "iteration_*.pth.tar")):
            match = re.fullmatch(r"iteration_(\d+)\.pth\.tar", os.path.basename(path))
            if match:
                # By age: a run that was resumed further back counts through its numbers again.
                numbered.append((os.stat(path).st_mtime_ns, int(match[1]), path))
        for *_, path in sorted(numbered)[: -self._keep]:
            remove_file(path)


def checkpoint_state(engine: Any) -> dict[str, Any]:
    """What a learner's checkpoint holds: the policy's state, ``last_iter``, ``last_step``, and
    ``eval_result`` if an evaluation was the reason for it."""
    return {
        **engine.policy.state_dict(),
        "last_iter": engine.last_iter.val,
        "last_step": engine.collector_envstep,
        **getattr(engine, "checkpoint_facts", {}),
    }


class LogShowHook(LearnerHook):
    """Writes the averages of the monitor every ``ext_args.freq`` iterations."""

    def __init__(self, *args: Any, ext_args: EasyDict = EasyDict(), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._freq = ext_args.get("freq", 1)

    def __call__(self, engine: Any) -> None:
        due = engine.last_iter.val % self._freq == 0
        if engine.rank == 0 or not engine.only_monitor_rank0:
            engine.update_monitor()
            if due:
                engine.log_monitor()
        for buffer in engine.log_buffer.values():
            buffer.clear()


class LogReduceHook(LearnerHook):
    """Averages what this iteration logged over all ranks."""

    def __init__(self, *args: Any, ext_args: EasyDict = EasyDict(), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def __call__(self, engine: Any) -> None:
        if get_world_size() > 1:
            for name, buffer in engine.log_buffer.items():
                engine.log_buffer[name] = {key: _mean(value) for key, value in buffer.items()}


def _mean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mean(item) for key, item in value.items()}
    if isinstance(value, bool) or not isinstance(value, int | float | torch.Tensor):
        return value
    tensor = torch.as_tensor(value, dtype=torch.float64).clone()
    allreduce(tensor)
    return tensor.item() if tensor.numel() == 1 else tensor


hook_mapping: dict[str, type] = {
    "load_ckpt": LoadCkptHook,
    "save_ckpt": SaveCkptHook,
    "log_show": LogShowHook,
    "log_reduce": LogReduceHook,
}

#: The short forms: config key to (type, position, priority, name of the value in ext_args).
_SHORT_FORMS = {
    "load_ckpt_before_run": ("load_ckpt", "before_run", 20, "load_path"),
    "save_ckpt_after_iter": ("save_ckpt", "after_iter", 20, "freq"),
    "save_ckpt_after_run": ("save_ckpt", "after_run", 20, None),
    "log_reduce_after_iter": ("log_reduce", "after_iter", 10, None),
    "log_show_after_iter": ("log_show", "after_iter", 20, "freq"),
}


def register_learner_hook(name: str, hook_type: type) -> None:
    """Make a hook class known by a name, for ``type`` in hook configs.

    Raises:
        ConfigError: Not a subclass of :class:`LearnerHook`.
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
        cfg: Hook names to either a full description (``type, priority, position, ext_args``), or
            the value of a short form: ``load_ckpt_before_run`` (path), ``save_ckpt_after_iter``
            and ``log_show_after_iter`` (iterations between two), ``save_ckpt_after_run`` and
            ``log_reduce_after_iter`` (bool). ``keep_ckpt`` is how many numbered checkpoints stay.

    Returns:
        Hooks by position, lowest priority value first.

    Raises:
        ConfigError: A name that is neither, or an unknown hook type.
    """
    hooks: dict[str, list[Hook]] = {position: [] for position in POSITIONS}
    keep = cfg.get("keep_ckpt", 0)
    for name, value in cfg.items():
        if name == "keep_ckpt":
            continue
        if isinstance(value, dict):
            add_learner_hook(hooks, _build_hook(name, value))
        elif name not in _SHORT_FORMS:
            raise ConfigError(
                f"unknown hook {name!r} = {value!r}: expected one of {sorted(_SHORT_FORMS)}, or a "
                "dict with type, priority, position and ext_args"
            )
        elif value:
            kind, position, priority, arg = _SHORT_FORMS[name]
            ext_args = {} if arg is None else {arg: value}
            if kind == "save_ckpt":
                ext_args["keep"] = keep
            args = EasyDict(ext_args)
            hook = hook_mapping[kind](name, priority, position=position, ext_args=args)
            add_learner_hook(hooks, hook)
    return hooks


def _build_hook(name: str, cfg: dict[str, Any]) -> LearnerHook:
    kind = cfg.get("type")
    if kind not in hook_mapping:
        raise ConfigError(f"hook {name!r}: unknown type {kind!r}, known are {sorted(hook_mapping)}")
    rest = {key: value for key, value in cfg.items() if key != "type"}
    rest["ext_args"] = EasyDict(rest.get("ext_args", {}))
    return hook_mapping[kind](rest.pop("name", name), rest.pop("priority", 20), **rest)


def add_learner_hook(hooks: dict[str, list[Hook]], hook: LearnerHook) -> None:
    """Add a hook at its place, after those of the same priority."""
    place = hooks.setdefault(hook.position, [])
    place.append(hook)
    place.sort(key=lambda item: item.priority)


def merge_hooks(
    hooks1: dict[str, list[Hook]], hooks2: dict[str, list[Hook]]
) -> dict[str, list[Hook]]:
    """Hooks of both by position; of equal priority, those of ``hooks1`` come first."""
    if set(hooks1) != set(hooks2):
        raise ConfigError(f"hooks have different positions: {sorted(hooks1)}, {sorted(hooks2)}")
    return {
        position: sorted(hooks1[position] + hooks2[position], key=lambda item: item.priority)
        for position in hooks1
    }


def show_hooks(hooks: dict[str, list[Hook]]) -> None:
    """Print each position's hooks in the order in which they run."""
    for position, place in hooks.items():
        names = ", ".join(f"{hook.name}({hook.priority})" for hook in place)
        print(f"{position}: {names or '-'}")
