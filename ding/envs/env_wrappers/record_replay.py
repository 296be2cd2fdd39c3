"""Videos of episodes."""

import uuid
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from ding.envs.common.video import VideoWriter, open_video
from ding.utils.errors import EnvError

from .gym_to_gymnasium import GymToGymnasiumWrapper

_DEFAULT_FPS = 30


class RecordReplayWrapper(gymnasium.Wrapper):
    """Saves each episode as ``<folder>/<name>_<token>_episode_<i>.mp4`` (or ``.gif``).

    The token keeps environments apart that share the folder. An episode that `close` or a reset
    cuts short is saved as far as it went.
    """

    keeps_return = True

    def __init__(self, env: gymnasium.Env, folder: str | Path, name: str) -> None:
        """
        Raises:
            EnvError: The environment does not render to arrays.
        """
        super().__init__(env)
        if env.render_mode != "rgb_array" and not isinstance(env.unwrapped, GymToGymnasiumWrapper):
            raise EnvError(
                f"cannot save replays of env {name!r}: its render_mode is {env.render_mode!r}, "
                "expected 'rgb_array'. Make it with gymnasium.make(..., render_mode='rgb_array'), "
                "or let env.env_id make it"
            )
        self._name = name
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
        self._stem = Path(folder) / f"{safe}_{uuid.uuid4().hex[:6]}"
        self._fps = float(self.metadata.get("render_fps") or _DEFAULT_FPS)
        self._episode = 0
        self._writer: VideoWriter | None = None
        self._first: np.ndarray

    def reset(self, **kwargs: Any) -> tuple[Any, dict]:
        self.finish()
        result = self.env.reset(**kwargs)
        # Kept until there is a step: an episode of one picture is no video.
        self._first = self._frame()
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict]:
        result = self.env.step(action)
        frame = self._frame()
        if self._writer is None:
            path = f"{self._stem}_episode_{self._episode}"
            self._writer = open_video(path, frame.shape[:2], self._fps)
            self._writer.add(self._first)
        self._writer.add(frame)
        if result[2] or result[3]:
            self.finish()
        return result

    def close(self) -> None:
        self.finish()
        self.env.close()

    def _frame(self) -> np.ndarray:
        try:
            image = self.env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise EnvError(
                f"cannot save replays of env {self._name!r}: drawing it fails: {error}"
            ) from error
        return np.ascontiguousarray(image, np.uint8)

    def finish(self) -> None:
        """Save the episode as far as it has gone."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()
            self._episode += 1
