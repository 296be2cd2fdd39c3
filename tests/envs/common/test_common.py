import sys

import numpy as np
import pytest
import torch

from ding.envs.common import affine_transform, save_frames_as_gif
from ding.utils.errors import DingError


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_bounds(make):
    out = affine_transform(make([-1.0, 0.0, 0.5, 3.0]), min_val=2.0, max_val=6.0)
    assert out.tolist() == [2.0, 4.0, 5.0, 6.0]


def test_alpha_and_beta():
    data = np.array([-2.0, 1.0])
    assert affine_transform(data, alpha=3.0).tolist() == [-3.0, 3.0]
    assert affine_transform(data, action_clip=False, alpha=3.0, beta=1.0).tolist() == [-5.0, 4.0]


def test_bounds_per_entry():
    low, high = np.array([0.0, -1.0]), np.array([2.0, 3.0])
    out = affine_transform(np.array([1.0, -1.0]), min_val=low, max_val=high)
    assert out.tolist() == [2.0, -1.0]


def test_neither_alpha_nor_bounds():
    with pytest.raises(ValueError, match="max_val"):
        affine_transform(np.zeros(1), min_val=1)


def test_gif_without_pillow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DingError, match=r"ding\[video\]"):
        save_frames_as_gif([np.zeros((8, 8, 3), np.uint8)], tmp_path / "a.gif")


def test_no_frames(tmp_path):
    with pytest.raises(ValueError, match="no frames"):
        save_frames_as_gif([], tmp_path / "a.gif")


def test_gif(tmp_path):
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "folder" / "a.gif"
    save_frames_as_gif([np.full((8, 9, 3), 20 * i, np.uint8) for i in range(4)], path)
    with image.open(path) as gif:
        assert gif.n_frames == 4
        assert gif.size == (9, 8)
