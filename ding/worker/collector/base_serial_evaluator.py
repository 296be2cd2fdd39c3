"""The base class of serial evaluators, and the results of their episodes."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ding.utils import (
    SERIAL_EVALUATOR_REGISTRY,
    broadcast_object_list,
    get_world_size,
)
from ding.utils.default_helper import first_goal
from ding.utils.errors import ConfigError, require_entries
from ding.utils.log_writer import Writer
from ding.utils.registry_factory import component
from ding.utils.types import Settings, State, Tree
from ding.worker.collector.serial_part import ISerialPart, SerialPart
from ding.worker.collector.steps import Envs, Info, Mode, Result, SaveFn


class ISerialEvaluator(ISerialPart):
    """Evaluates a policy and decides whether it has reached ``stop_value``.

    Attributes:
        best: Best mean result; ``None`` before the first evaluation.
        last: Newest mean result.
        last_eval_iter: Iteration at which `should_eval` last returned true; -1 if it never did.
    """

    best: Result = None
    last: Result = None
    last_eval_iter: int = -1

    @abstractmethod
    def close(self) -> None:
        """Close the environments and the log."""

    @abstractmethod
    def should_eval(self, train_iter: int) -> bool:
        """Whether an evaluation is due; true at most once per iteration."""

    def put_off(self) -> None:
        """Record that the evaluation for which `should_eval` last returned true was not made."""

    @abstractmethod
    def eval(
        self,
        save_ckpt_fn: SaveFn = None,
        train_iter: int = -1,
        envstep: int = -1,
        n_episode: int | None = None,
    ) -> Result:
        """Evaluate; returns whether training may stop, and the results."""


class SerialEvaluator(SerialPart, ISerialEvaluator):
    """Decides when to evaluate, and keeps the best result and the log.

    Args:
        cfg: Evaluator config: ``eval_freq`` (in train iterations; -1: evaluate only at iteration
            0), ``stop_value``, ``n_episode``.
        env: An env manager, unless the subclass documents another type.
        policy: Eval mode; a list of eval modes for battles.

    See `SerialPart` for the other arguments.
    """

    def __init__(
        self,
        cfg: Settings,
        env: Envs = None,
        policy: Mode | list[Mode] = None,
        tb_logger: Writer | None = None,
        exp_name: str | None = "default_experiment",
        instance_name: str | None = "evaluator",
    ) -> None:
        super().__init__(cfg, tb_logger, exp_name, instance_name or "evaluator")
        self._default_n_episode: int | None = self._cfg.get("n_episode")
        self._stop_value = first_goal(self._cfg.get("stop_value", float("inf")))
        self.reset(policy, env)

    def _start_anew(self) -> None:
        self.best = None
        self.last = None
        self.last_eval_iter = self._eval_iter_before = -1

    def should_eval(self, train_iter: int) -> bool:
        """True at iteration 0 and every ``eval_freq`` iterations (at 0 only if it is -1), never
        twice at the same iteration."""
        if train_iter == self.last_eval_iter:
            return False
        freq = self._cfg.eval_freq
        if train_iter != 0 and (freq < 0 or train_iter - max(self.last_eval_iter, 0) < freq):
            return False
        # Kept for `put_off`: a resumed run repeats an evaluation that was interrupted or failed.
        self._eval_iter_before, self.last_eval_iter = self.last_eval_iter, train_iter
        return True

    def put_off(self) -> None:
        self.last_eval_iter = self._eval_iter_before

    def _keep_best(self, result: Result, better: bool, save_ckpt_fn: SaveFn) -> None:
        self.last = result
        if better:
            self.best = result
            if save_ckpt_fn is not None:
                save_ckpt_fn("ckpt_best.pth.tar")

    def _share(self, stop: bool, result: Result) -> tuple[bool, Result]:
        """Broadcast rank 0's result to all ranks."""
        # All ranks must stop at the same update: a rank that continued would wait for gradients of
        # the others.
        shared = [(stop, result)]
        if get_world_size() > 1:
            broadcast_object_list(shared, src=0)
        return shared[0]

    def state_dict(self) -> State:
        return {
            "best": self.best,
            "last": self.last,
            "last_eval_iter": self.last_eval_iter,
            **self._env_state(),
        }

    def load_state_dict(self, state_dict: State) -> None:
        require_entries("an evaluator", state_dict, ("best", "last_eval_iter"))
        self.best = state_dict["best"]
        self.last = state_dict.get("last")
        self.last_eval_iter = self._eval_iter_before = state_dict["last_eval_iter"]
        self._load_env_state(state_dict)


def create_serial_evaluator(cfg: Mapping[str, Any], **kwargs: object) -> ISerialEvaluator:
    """Build the registered evaluator ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The evaluator's ``type``, and its keys that differ from the defaults.
        kwargs: ``env``, ``policy``, ``tb_logger``, ``exp_name``, ``instance_name``.

    Example:

        >>> from ding.worker import create_serial_evaluator
        >>> type(create_serial_evaluator({"type": "interaction"})).__name__
        'InteractionSerialEvaluator'
    """
    cls, cfg = component(SERIAL_EVALUATOR_REGISTRY, cfg)
    evaluator: ISerialEvaluator = cls(cfg=cfg, **kwargs)
    return evaluator


def fair_shares(env_num: int, n_episode: int) -> np.ndarray:
    """How many of ``n_episode`` episodes each environment runs, int64 ``[env_num]``.

    Using the first ``n_episode`` episodes that end would favour short ones, so each environment's
    number is fixed in advance: ``n_episode / env_num``, and one more for the first environments.

    Raises:
        ConfigError: Fewer episodes than environments.
    """
    if n_episode < env_num:
        raise ConfigError(
            f"n_evaluator_episode={n_episode} is less than evaluator_env_num={env_num}: "
            f"some environments would have nothing to do; raise it to {env_num} or more"
        )
    share, extra = divmod(n_episode, env_num)
    return share + (np.arange(env_num) < extra)


class VectorEvalMonitor:
    """Results of ``n_episode`` episodes, of which each environment runs its share.

    Raises:
        ConfigError: Fewer episodes than environments.
    """

    def __init__(self, env_num: int, n_episode: int) -> None:
        self._share = fair_shares(env_num, n_episode).tolist()
        self._returns: list[list[float]] = [[] for _ in range(env_num)]
        self._infos: list[list[Info]] = [[] for _ in range(env_num)]
        self._frames: list[list[np.ndarray]] = [[] for _ in range(env_num)]
        self._videos: list[tuple[float, list[np.ndarray]]] = []

    def is_finished(self) -> bool:
        """Whether every environment has run its share."""
        return all(map(self.env_is_finished, range(len(self._share))))

    def env_is_finished(self, env_id: int) -> bool:
        """Whether one environment has run its share."""
        return bool(len(self._returns[env_id]) >= self._share[env_id])

    def update_info(self, env_id: int, info: Info) -> None:
        """Record the info at an episode's end; ignored beyond the environment's share."""
        if len(self._infos[env_id]) < self._share[env_id]:
            self._infos[env_id].append(info)

    def update_reward(self, env_id: int, reward: Tree) -> None:
        """Record the return of an episode; ignored beyond the environment's share."""
        if self.env_is_finished(env_id):
            return
        episode_return = float(np.asarray(reward).item())
        self._returns[env_id].append(episode_return)
        if self._frames[env_id]:
            self._videos.append((episode_return, self._frames[env_id]))
            self._frames[env_id] = []

    def update_video(self, imgs: dict[int, np.ndarray]) -> None:
        """Record a frame, uint8 ``[H, W, C]``, of each environment's running episode."""
        for env_id, img in imgs.items():
            if not self.env_is_finished(env_id):
                self._frames[env_id].append(img)

    def get_video(self) -> np.ndarray:
        """Worst, median and best episode, uint8 ``[3, T, C, H, W]``, padded with the last frames.

        Raises:
            ValueError: No frames were recorded.
        """
        if not self._videos:
            raise ValueError("no frames were taken: call update_video() at each step")
        ranked = [frames for _, frames in sorted(self._videos, key=lambda item: item[0])]
        chosen = [ranked[0], ranked[len(ranked) // 2], ranked[-1]]
        longest = max(map(len, chosen))
        padded = [frames + [frames[-1]] * (longest - len(frames)) for frames in chosen]
        video = np.stack([np.stack(frames) for frames in padded])
        return np.moveaxis(video, 4, 2)

    def get_episode_return(self) -> list[float]:
        """Returns of all finished episodes, environment by environment."""
        return [value for returns in self._returns for value in returns]

    def get_latest_reward(self, env_id: int) -> float:
        """Return of the environment's latest episode."""
        return self._returns[env_id][-1]

    def get_current_episode(self) -> int:
        """Number of finished episodes."""
        return sum(map(len, self._returns))

    def get_episode_info(self) -> dict[str, list[Tree]]:
        """The values of each key that occurs in the infos of all finished episodes."""
        infos = [info for infos in self._infos for info in infos]
        if not infos:
            return {}
        shared = [key for key in infos[0] if all(key in info for info in infos)]
        return {key: [info[key] for info in infos] for key in shared}

    def get_means(self) -> dict[str, float]:
        """Means of the numeric info values over all finished episodes, as ``<key>_mean``."""
        return {
            f"{key}_mean": float(np.mean([np.asarray(value).item() for value in values]))
            for key, values in self.get_episode_info().items()
            if all(_is_number(value) for value in values)
        }


def _is_number(value: Tree) -> bool:
    if isinstance(value, str | bytes) or value is None:
        return False
    array = np.asarray(value)
    return array.size == 1 and array.dtype.kind in "biuf"
