"""Videos of episodes."""

import uuid
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ding.envs.common.video import VideoWriter, name_episode
from ding.envs.vector_step import Action, EnvReset, EnvStep, Info, Reward
from ding.utils.errors import EnvError

from .gym_to_gymnasium import GymToGymnasiumWrapper
from .rewards import RawRewards, raw_rewards

_DEFAULT_FPS = 30


class RecordReplayWrapper(gymnasium.Wrapper):
    """Saves each episode as ``<folder>/<name>_episode_<i>_return_<return>.mp4`` (or ``.gif``).

    Episodes are numbered in the order in which they end, together with those of other environments
    in the folder. One that `close` or a reset cuts short is saved with ``_cut`` behind its return.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env, folder: str | Path, name: str) -> None:
        super().__init__(env)
        if env.render_mode != "rgb_array" and not isinstance(env.unwrapped, GymToGymnasiumWrapper):
            raise EnvError(
                f"cannot save replays of env {name!r}: its render_mode is {env.render_mode!r}, "
                "expected 'rgb_array'. Make it with gymnasium.make(..., render_mode='rgb_array'), "
                "or let env.env_id make it"
            )
        self._name = name
        self._file_name = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
        self._part = Path(folder) / f"{self._file_name}_{uuid.uuid4().hex[:6]}.part"
        self._fps = float(self.metadata.get("render_fps") or _DEFAULT_FPS)
        self._writer: VideoWriter | None = None
        self._first: np.ndarray
        self._return: Reward = 0.0
        self._raw: RawRewards | None = None

    def reset(self, **kwargs: Any) -> EnvReset:
        self.finish()
        result = self.env.reset(**kwargs)
        # Kept until there is a step: an episode of one picture is no video.
        self._first = self._frame()
        self._return = 0.0
        self._raw = raw_rewards(self.env)
        if self._raw is not None:
            self._raw.total = 0.0
        return result

    def step(self, action: Action) -> EnvStep:
        result = self.env.step(action)
        if self._raw is None:
            self._return = self._return + result[1]
        frame = self._frame()
        if self._writer is None:
            self._writer = VideoWriter(self._part, frame.shape[:2], self._fps)
            self._writer.add(self._first)
        self._writer.add(frame)
        if result[2] or result[3]:
            self._save(is_cut=False, info=result[4])
        return result

    def close(self) -> None:
        self.finish()
        self.env.close()

    def _frame(self) -> np.ndarray:
        try:
            image: Any = self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise EnvError(
                f"cannot save replays of env {self._name!r}: drawing it fails: {error}"
            ) from error
        if np.ndim(image) < 2:
            raise EnvError(
                f"cannot save replays of env {self._name!r}: its render() returned {image!r:.60}, "
                "expected an array of shape [height, width, 3]"
            )
        return np.ascontiguousarray(image, np.uint8)

    def finish(self) -> None:
        """Save the episode as far as it has gone."""
        self._save(is_cut=True, info={})

    def _save(self, is_cut: bool, info: Info) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            own = self._return if self._raw is None else self._raw.total
            episode_return = float(
                np.sum({"eval_episode_return": own, **info}["eval_episode_return"])
            )
            name_episode(writer.close(), self._file_name, episode_return, is_cut)
