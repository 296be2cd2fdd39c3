import sys
import types
from pathlib import Path

import pytest
from gymnasium.wrappers import TransformReward

from ding.envs import DingEnvWrapper
from ding.envs.env_wrappers.record_replay import name_episode
from ding.utils.errors import DingError, EnvError
from tests.envs.small_envs import CountEnv, OldEnv


class FakeWriter:
    """Writes what moviepy's writer is given, so that files can be looked into."""

    def __init__(self, filename, size, fps):
        self.path = Path(filename)
        self.data = f"{size[0]}x{size[1]}@{fps:g}:".encode()

    def write_frame(self, frame):
        self.data += bytes([frame[0, 0, 0]])

    def close(self):
        self.path.write_bytes(self.data)


@pytest.fixture
def moviepy(monkeypatch):
    names = ["moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ffmpeg_writer"]
    modules = [types.ModuleType(name) for name in names]
    for name, module, child in zip(names, modules, [*modules[1:], None]):
        monkeypatch.setitem(sys.modules, name, module)
        if child is not None:
            setattr(module, child.__name__.rpartition(".")[2], child)
    modules[-1].FFMPEG_VideoWriter = FakeWriter


def test_one_file_per_episode(moviepy, tmp_path):
    env = DingEnvWrapper(CountEnv(length=2, render_mode="rgb_array"))
    env.reset()
    env.enable_save_replay(str(tmp_path / "video"))
    with pytest.raises(EnvError, match="reset"):
        env.step(0)
    for _ in range(2):
        env.reset()
        env.step(0)
        env.step(0)
    env.reset()
    env.close()
    files = sorted((tmp_path / "video").iterdir(), key=lambda f: f.name)
    # Not of the last, which has no step.
    assert [f.name for f in files] == [f"CountEnv_episode_000{i}_return_3.mp4" for i in (1, 2)]
    assert files[0].read_bytes() == b"48x32@10:" + bytes([0, 20, 40])


@pytest.mark.parametrize(
    ("length", "wrappers", "end"),
    [
        (2, [], "3"),
        (9, [], "3_cut"),
        (2, [lambda env: TransformReward(env, lambda reward: -100 * reward)], "3"),
    ],
    ids=["whole", "cut", "other rewards"],
)
def test_environments_share_a_folder_and_name_files_by_their_returns(
    moviepy, tmp_path, length, wrappers, end
):
    for _ in range(2):
        cfg = {"replay_path": str(tmp_path), "env_wrapper": wrappers}
        env = DingEnvWrapper(CountEnv(length=length, render_mode="rgb_array"), cfg)
        env.reset()
        env.step(0)
        env.step(0)
        env.close()
    names = sorted(f.name for f in tmp_path.iterdir())
    assert names == [f"CountEnv_episode_000{i}_return_{end}.mp4" for i in (1, 2)]


@pytest.mark.parametrize(
    ("value", "shown"), [(-156.25, "-156.2"), (0.987654, "0.9877"), (123456.7, "123457")]
)
def test_returns_are_rounded_to_what_one_reads(tmp_path, value, shown):
    video = tmp_path / "x.part.mp4"
    video.touch()
    assert name_episode(video, "a", value, False).name == f"a_episode_0001_return_{shown}.mp4"


def test_another_folder_takes_over(moviepy, tmp_path):
    env = DingEnvWrapper(CountEnv(render_mode="rgb_array"), {"replay_path": str(tmp_path / "one")})
    env.reset()
    env.step(0)
    env.enable_save_replay(str(tmp_path / "two"))
    env.reset()
    env.step(0)
    env.close()
    for folder in ("one", "two"):
        assert len(list((tmp_path / folder).iterdir())) == 1


def test_old_env(moviepy, tmp_path):
    env = DingEnvWrapper(OldEnv(length=1))
    env.enable_save_replay(str(tmp_path))
    env.reset()
    env.step(0)
    assert [f.suffix for f in tmp_path.iterdir()] == [".mp4"]


def test_env_that_does_not_render(tmp_path):
    env = DingEnvWrapper(CountEnv())
    env.enable_save_replay(str(tmp_path))
    with pytest.raises(EnvError, match="render_mode='rgb_array'"):
        env.reset()


def test_missing_drawing_library(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pygame", None)
    env = DingEnvWrapper(cfg={"env_id": "CartPole-v1", "replay_path": str(tmp_path)})
    with pytest.raises(EnvError, match=r"CartPole-v1.*pygame"):
        env.reset()
    env.close()


def test_id_is_made_again_with_rendering(tmp_path):
    env = DingEnvWrapper(cfg={"env_id": "CartPole-v1"})
    env.reset()
    env.enable_save_replay(str(tmp_path))
    assert env.build().render_mode == "rgb_array"
    env.close()


def test_missing_library_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "moviepy.video.io.ffmpeg_writer", None)
    env = DingEnvWrapper(CountEnv(render_mode="rgb_array"), {"replay_path": str(tmp_path)})
    env.reset()
    with pytest.raises(DingError, match=r"ding\[video\]"):
        env.step(0)
