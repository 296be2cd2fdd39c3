"""The env type ``gymnasium``: any environment that gymnasium can make."""

from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY

from .ding_env_wrapper import DingEnvWrapper


@ENV_REGISTRY.register("gymnasium")
class GymnasiumEnv(DingEnvWrapper):
    """``create_config.env = dict(type='gymnasium')`` with ``main_config.env.env_id``.

    The other keys are those of :class:`DingEnvWrapper`.
    """

    def __init__(self, cfg: dict) -> None:
        if not cfg.get("env_id"):
            raise ConfigError(
                "env.env_id is missing: env type 'gymnasium' needs the id of an environment, as in "
                "env=dict(env_id='CartPole-v1')"
            )
        super().__init__(cfg=cfg, is_gymnasium=True)
