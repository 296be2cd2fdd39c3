"""The path at which users' modules import runners of elements."""

from ding.envs.common.env_element import EnvElementRunner, IEnvElementRunner

__all__ = ["EnvElementRunner", "IEnvElementRunner"]
