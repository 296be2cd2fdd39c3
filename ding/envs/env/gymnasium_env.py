"""The env type ``gymnasium``: any environment that gymnasium can make."""

from collections.abc import Sequence
from typing import ClassVar

from ding.envs.env_wrappers.build import WrapperEntry, config_wrappers, given_wrappers
from ding.utils.errors import ConfigError
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config, Settings

from ._make import Simulator, old_id_line
from .ding_env_wrapper import DingEnvWrapper


@ENV_REGISTRY.register("gymnasium")
class GymnasiumEnv(DingEnvWrapper):
    """``create_config.env = dict(type='gymnasium')`` with ``main_config.env.env_id``.

    The other keys are those of `DingEnvWrapper`. Subclasses are presets: their attributes, or else
    ``gymnasium_id``, ``make_kwargs`` and ``inner_wrappers``, say what their own keys mean.

    Attributes:
        default_id: The environment if there is no ``env_id``; empty where there has to be one.
        example_id: One that suits the type.
        needs: The package that environments of the type need.
        make_keys: Keys that are arguments of ``gymnasium.make``, unless they are ``None``.
        wrapped_by: Wrappers inside of ``env_wrapper``, the innermost first.
    """

    default_id: ClassVar[str] = ""
    example_id: ClassVar[str] = "CartPole-v1"
    needs: ClassVar[Simulator | None] = None
    make_keys: ClassVar[Sequence[str]] = ()
    wrapped_by: ClassVar[Sequence[WrapperEntry]] = ()

    def __init__(self, cfg: Config) -> None:
        cfg = {**self.config, **cfg}
        caller = self.caller_of(cfg)
        own = self.inner_wrappers(cfg, caller)
        translated = {
            "env_id": self.gymnasium_id(cfg),
            "kwargs": {**self.make_kwargs(cfg), **(cfg.get("kwargs") or {})},
            "env_wrapper": [*own, *given_wrappers(cfg, caller)],
        }
        super().__init__(cfg={**cfg, **translated}, is_gymnasium=True)

    @classmethod
    def gymnasium_id(cls, cfg: Settings) -> str:
        """The id to make, perhaps an old one; ``ConfigError`` if it does not suit this type."""
        env_id = cfg.get("env_id") or cls.default_id
        if not isinstance(env_id, str) or not env_id:
            raise ConfigError(
                f"env.env_id is {cfg.get('env_id')!r}: environments of {cls.__name__} need an id "
                f"that gymnasium knows, as in env=dict(env_id={cls.example_id!r})"
            )
        return env_id

    @classmethod
    def make_kwargs(cls, cfg: Settings) -> Config:
        """Arguments of ``gymnasium.make`` from the type's own keys; ``kwargs`` win over them."""
        return {name: cfg[name] for name in cls.make_keys if cfg[name] is not None}

    @classmethod
    def inner_wrappers(cls, cfg: Settings, caller: str) -> list[WrapperEntry]:
        """Wrappers inside of ``env_wrapper`` from the type's own keys."""
        return list(cls.wrapped_by)

    @classmethod
    def pool_kwargs(cls, cfg: Settings) -> Config:
        """Arguments of ``envpool.make`` for what `cfg` describes, the task's id among them.

        Args:
            cfg: With all keys of the type.

        Raises:
            ConfigError: `cfg` asks for wrappers.
        """
        cls.refuse_wrappers(cfg, cls.inner_wrappers(cfg, cls.caller_of(cfg)))
        limit = cfg.get("max_episode_steps") or cfg.get("max_step")
        limits = {"max_episode_steps": limit} if limit else {}
        task = {"task_id": cls.gymnasium_id(cfg), **limits}
        return {**task, **cls.make_kwargs(cfg), **(cfg["kwargs"] or {})}

    @classmethod
    def refuse_wrappers(cls, cfg: Settings, inner: Sequence[WrapperEntry] = ()) -> None:
        """Raise a `ConfigError` for wrappers, which EnvPool does not have.

        Args:
            cfg: With the keys that ask for some.
            inner: Those of the type itself.
        """
        wrappers = [*inner, *config_wrappers(cfg, cls.caller_of(cfg))]
        if wrappers:
            names = [str(one.get("type") if isinstance(one, dict) else one) for one in wrappers]
            raise ConfigError(
                f"env_manager 'env_pool' steps {cls.gymnasium_id(cfg)!r} without wrappers of "
                f"Python, and its config asks for {', '.join(names)}: leave them out, or use "
                "env_manager 'subprocess'"
            )

    @staticmethod
    def caller_of(cfg: Settings) -> str:
        """Role of an environment with this config: ``collector`` or ``evaluator``."""
        evaluates = cfg.get("caller") == "evaluator" or not cfg["is_train"]
        return "evaluator" if evaluates else "collector"

    @classmethod
    def says(cls, cfg: Settings) -> list[str]:
        """Notes for the user about this config: a line for an old id."""
        if not (cfg.get("env_id") or cls.default_id):
            return []
        line = old_id_line(cls.gymnasium_id(cfg))
        return [] if line is None else [line]
