from ding.envs.common.scaling import affine_transform
from ding.envs.common.video import save_frames_as_gif

__all__ = ["affine_transform", "save_frames_as_gif"]
