from .common_function import (
    div_func as div_func,
    div_one_hot as div_one_hot,
)
from .env_element import (
    EnvElement as EnvElement,
    EnvElementInfo as EnvElementInfo,
    IEnvElement as IEnvElement,
)
from .env_element_runner import (
    EnvElementRunner as EnvElementRunner,
    IEnvElementRunner as IEnvElementRunner,
)
from .scaling import (
    affine_transform as affine_transform,
)
from .video import (
    save_frames_as_gif as save_frames_as_gif,
)
