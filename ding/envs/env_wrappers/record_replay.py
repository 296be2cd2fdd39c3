"""Videos of episodes, MP4, written frame by frame."""

import fcntl
import os
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from ding.envs.vector_step import Action, EnvReset, EnvStep, Info, ResetArgs, Reward
from ding.utils.errors import DingError, EnvError
from ding.utils.types import Tree

from .gym_to_gymnasium import GymToGymnasiumWrapper
from .rewards import RawRewards, raw_rewards

if TYPE_CHECKING:
    from moviepy.video.io.ffmpeg_writer import FFMPEG_VideoWriter
    from typing_extensions import Unpack

_DEFAULT_FPS = 30


class RecordReplayWrapper(gymnasium.Wrapper):
    """Saves each episode as ``<folder>/<name>_episode_<i>_return_<return>.mp4``.

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
        self._part = Path(folder) / f"{self._file_name}_{uuid.uuid4().hex[:6]}.part.mp4"
        self._fps = float(self.metadata.get("render_fps") or _DEFAULT_FPS)
        self._writer: FFMPEG_VideoWriter | None = None
        self._first: np.ndarray
        self._return: Reward = 0.0
        self._raw: RawRewards | None = None

    def reset(self, **kwargs: "Unpack[ResetArgs]") -> EnvReset:
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
            self._writer = _video(self._part, frame.shape[:2], self._fps)
            self._writer.write_frame(self._first)
        self._writer.write_frame(frame)
        if result[2] or result[3]:
            self._save(is_cut=False, info=result[4])
        return result

    def close(self) -> None:
        self.finish()
        self.env.close()

    def _frame(self) -> np.ndarray:
        try:
            image: Tree = self.env.render()
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
            writer.close()
            name_episode(self._part, self._file_name, episode_return, is_cut)


def _video(path: Path, size: tuple[int, int], fps: float) -> "FFMPEG_VideoWriter":
    """A file of frames of `size`, height and width; its folder is made."""
    try:
        from moviepy.video.io.ffmpeg_writer import FFMPEG_VideoWriter
    except ImportError as error:
        raise DingError('saving videos needs moviepy: pip install "ding[video]"') from error
    path.parent.mkdir(parents=True, exist_ok=True)
    return FFMPEG_VideoWriter(str(path), size[::-1], fps)


def name_episode(video: Path, name: str, episode_return: float, is_cut: bool) -> Path:
    """Rename a finished video to ``<name>_episode_<number>_return_<return>``; its new path.

    Numbers follow those in the folder, which other processes may write to as well.
    """
    shown = f"{episode_return:.4g}" if abs(episode_return) < 10_000 else f"{episode_return:.0f}"
    numbered = re.compile(rf"{re.escape(name)}_episode_(\d+)_")
    folder = os.open(video.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # other environments finish their videos, too
        found = (numbered.match(other.name) for other in video.parent.iterdir())
        number = max((int(match[1]) for match in found if match), default=0) + 1
        cut = "_cut" if is_cut else ""
        stem = f"{name}_episode_{number:04d}_return_{shown}{cut}"
        return video.replace(video.with_name(stem + video.suffix))
    finally:
        os.close(folder)
