from .common_function import (
    affine_transform as affine_transform,
    div_func as div_func,
    div_one_hot as div_one_hot,
    save_frames_as_gif as save_frames_as_gif,
)
from .env_element import (
    EnvElement as EnvElement,
    EnvElementInfo as EnvElementInfo,
    EnvElementRunner as EnvElementRunner,
    IEnvElement as IEnvElement,
    IEnvElementRunner as IEnvElementRunner,
)
