"""Small environments and policies whose every number is known, for tests of what drives them."""

from typing import Any

import numpy as np
import torch
from easydict import EasyDict
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvManager, BaseEnvTimestep
from ding.policy import Policy


class LineEnv(BaseEnv):
    """Walks a line: the observation is ``[env number, step]``, the reward is the step's number.

    Config: ``length`` of an episode, ``truncate`` it rather than terminate, ``number`` of the
    environment, ``abnormal_at`` a step (counted over all episodes) that fails.
    """

    def __init__(self, cfg: dict) -> None:
        self._cfg = EasyDict(dict(length=5, truncate=False, number=0, abnormal_at=None) | cfg)
        self._steps = 0
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.reward_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    def observe(self) -> np.ndarray:
        return np.array([self._cfg.number, self._t], np.float32)

    def reset(self) -> np.ndarray:
        self._t, self._return = 0, 0.0
        return self.observe()

    def step(self, action: Any) -> BaseEnvTimestep:
        self._t += 1
        self._steps += 1
        self._return += self._t
        if self._steps == self._cfg.abnormal_at:
            info = {"abnormal": True}
            return BaseEnvTimestep(self.observe(), np.zeros(1, np.float32), False, info)
        done = self._t == self._cfg.length
        info: dict[str, Any] = {}
        if done:
            info = {
                "eval_episode_return": self._return,
                "truncated": self._cfg.truncate,
                "terminated": not self._cfg.truncate,
            }
        return BaseEnvTimestep(self.observe(), np.array([self._t], np.float32), done, info)

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        self._seed = seed

    def close(self) -> None:
        pass


class DuelLineEnv(LineEnv):
    """A line for several players: player p's rewards are (p + 1) times the step's number."""

    def __init__(self, cfg: dict) -> None:
        super().__init__(cfg)
        self._players = cfg.get("players", 2)
        shape = (self._players, 2)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)
        self.action_space = spaces.MultiDiscrete([2] * self._players)

    def observe(self) -> np.ndarray:
        return np.tile(super().observe(), (self._players, 1))

    def step(self, action: Any) -> BaseEnvTimestep:
        assert len(action) == self._players
        obs, reward, done, info = super().step(action)
        scale = np.arange(1, self._players + 1, dtype=np.float32)
        infos = [dict(info) for _ in scale]
        if done:
            for factor, one in zip(scale, infos):
                one["eval_episode_return"] *= float(factor)
        return BaseEnvTimestep(obs, reward[0] * scale, done, infos)


def line_manager(env_num: int = 2, env_cls: type = LineEnv, **cfg: Any) -> BaseEnvManager:
    """A base env manager of lines; list values in ``cfg`` give each environment its own."""

    def make(number: int) -> Any:
        own = {k: v[number] if isinstance(v, list) else v for k, v in cfg.items()}
        return lambda: env_cls({"number": number, **own})

    return BaseEnvManager([make(i) for i in range(env_num)], EasyDict(cfg_type="x"))


class Writer:
    """Remembers the scalars of each tag, as ``(step, value)``."""

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[int, Any]]] = {}

    def add_scalar(self, tag: str, value: Any, step: int) -> None:
        self.rows.setdefault(tag, []).append((step, value))

    @property
    def last(self) -> dict[str, tuple[Any, int]]:
        """The newest value of each tag, and its step."""
        return {tag: rows[-1][::-1] for tag, rows in self.rows.items()}

    def flush(self) -> None:
        pass


class StepPolicy(Policy):
    """Acts by the step's parity; batched."""

    config = dict(
        type="step", on_policy=False, nstep=1, collect=dict(n_sample=4, unroll_len=1), eval=dict()
    )

    def __init__(self, enable_field: list[str] | None = None, **cfg: Any) -> None:
        merged = self.default_config()
        merged.update(cfg)
        self.resets: list[Any] = []
        super().__init__(merged, torch.nn.Linear(2, 2), enable_field or ["collect", "eval"])

    def _forward_collect_batch(self, obs: torch.Tensor, **kwargs: Any) -> dict[str, torch.Tensor]:
        return {"action": (obs[..., 1] % 2).long()}

    def _forward_eval_batch(self, obs: torch.Tensor, **kwargs: Any) -> dict[str, torch.Tensor]:
        return self._forward_collect_batch(obs)


class RowPolicy(StepPolicy):
    """The same policy by the per-environment API, as users write it."""

    def _forward_collect(self, data: dict[int, Any], **kwargs: Any) -> dict[int, Any]:
        return {i: {"action": int(obs[1] % 2)} for i, obs in data.items()}

    def _process_transition(self, obs: Any, policy_output: Any, timestep: Any) -> dict[str, Any]:
        return {
            "obs": obs,
            "next_obs": timestep.obs,
            "action": policy_output["action"],
            "reward": timestep.reward,
            "done": timestep.done,
        }

    def _get_train_sample(self, transitions: Any) -> Any:
        return transitions

    def _forward_eval(self, data: dict[int, Any], **kwargs: Any) -> dict[int, Any]:
        return self._forward_collect(data)

    def _reset_collect(self, data_id: list[int] | None = None) -> None:
        self.resets.append(data_id)

    _reset_eval = _reset_collect
