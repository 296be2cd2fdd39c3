"""Video files, written frame by frame: MP4 with moviepy, else GIF with pillow."""

import fcntl
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ding.utils.errors import DingError
from ding.utils.file_helper import put_in_place, temporary_name

_INSTALL = 'pip install "ding[video]"'
_GIF_WIDTH = 320  # pixels; a GIF is held in memory until it is written


class VideoWriter:
    """A video file of frames ``[H, W, 3]`` uint8; its folder is made.

    Args:
        stem: Path without the ending, of the file until it gets its name.
        size: Height and width of the frames.
        fps: Frames per second.

    Raises:
        DingError: Neither moviepy nor pillow is installed.
    """

    def __init__(self, stem: str | Path, size: tuple[int, int], fps: float) -> None:
        Path(stem).parent.mkdir(parents=True, exist_ok=True)
        self._fps = fps
        self._frames: list[Any] = []
        self._mp4: Any = None
        try:
            import moviepy.video.io.ffmpeg_writer as moviepy
        except ImportError:
            self._image, self._path = _pillow(), Path(f"{stem}.gif")
        else:
            self._path = Path(f"{stem}.mp4")
            self._mp4 = moviepy.FFMPEG_VideoWriter(str(self._path), size[::-1], fps)

    def add(self, frame: np.ndarray) -> None:
        if self._mp4 is not None:
            self._mp4.write_frame(frame)
            return
        image = self._image.fromarray(frame)
        image.thumbnail((_GIF_WIDTH, _GIF_WIDTH))
        self._frames.append(image.convert("P", palette=self._image.Palette.ADAPTIVE))

    def close(self) -> Path:
        """Finish the file; returns its path."""
        if self._mp4 is not None:
            self._mp4.close()
        else:
            _write_gif(self._frames, self._path, self._fps)
        return self._path


def save_frames_as_gif(frames: Sequence[np.ndarray], path: str | Path, fps: float = 20) -> None:
    """Write frames, each ``[H, W, 3]`` uint8, as a GIF that repeats.

    Raises:
        DingError: pillow is not installed.
        ValueError: There are no frames.
    """
    if not len(frames):
        raise ValueError(f"no frames to save as {path}")
    image = _pillow()
    _write_gif([image.fromarray(np.asarray(f, np.uint8)) for f in frames], Path(path), fps)


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


def _write_gif(images: list[Any], path: Path, fps: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = temporary_name(str(path))
    images[0].save(
        part,
        format="GIF",
        save_all=True,
        append_images=images[1:],
        duration=round(1000 / fps),
        loop=0,
    )
    put_in_place(part, str(path), durable=False)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise DingError(f"saving videos needs moviepy or pillow: {_INSTALL}") from error
    return Image
