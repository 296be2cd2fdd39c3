"""The seam between a serial run and the models that rewrite its rewards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from easydict import EasyDict

from ding.data import Columns
from ding.policy.fit import action_space_of, model_shapes
from ding.utils import REWARD_MODEL_REGISTRY, import_module
from ding.utils.class_config import Configurable
from ding.utils.errors import ConfigError, require_entries
from ding.utils.log_writer import ScalarWriter

#: Transitions by name: an array ``[N, ...]``, or a nested mapping of such.
Transitions: TypeAlias = dict[str, Any]
#: What `BaseRewardModel.state_dict` returns: tensors, arrays, numbers and containers of them.
State: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Shapes:
    """What a reward model's networks take.

    Attributes:
        obs_shape: Length of an observation, or ``[C, H, W]``; ``None`` if it is something else.
        action_shape: Number of choices, or length of an action; ``None`` if it is something else.
        discrete: Whether actions are choices.
    """

    obs_shape: int | Sequence[int] | None
    action_shape: int | None
    discrete: bool


class BaseRewardModel(Configurable):
    """Base class of reward models. Override the methods you need; all do nothing here.

    In each round of a run the order is: `collected` (may be called several times), `train`, and
    `drawn` before each update of the policy.

    A model whose reward depends on a transition alone, and changes little, overrides `collected`:
    returns over several steps and advantages are computed from its rewards. A model whose reward
    changes quickly may override `drawn`, for off-policy policies with one-step samples.

    Args:
        cfg: The section ``reward_model`` of the config.
        shapes: Of the environments' observations and actions.
        device: Where networks are computed.
        tb_logger: Writer of scalars.

    Attributes:
        networks: Named modules and optimisers that are part of `state_dict`; subclasses fill it.
    """

    config: dict[str, Any] = dict(type="")
    #: Whether `collected` needs whole episodes, each one trajectory.
    needs_episodes = False
    #: Whether its transitions are not those of the policy, so that only a replay buffer takes them.
    needs_replay = False

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        self._cfg, self._shapes, self._device = cfg, shapes, device
        self._tb_logger = tb_logger
        self.networks: dict[str, torch.nn.Module | torch.optim.Optimizer] = {}

    def collected(
        self, transitions: Transitions, lengths: np.ndarray
    ) -> tuple[Transitions, np.ndarray]:
        """Rewrite what was collected, before training samples are made of it.

        Args:
            transitions: ``obs``, ``next_obs``, ``action``, ``reward`` (``[N]``), ``done``
                (``[N]``, false where an episode was truncated), ``collect_iter`` and what the
                policy adds: trajectories one after the other. The arrays are only to be read.
            lengths: Number of transitions of each trajectory, int64 ``[M]``.

        Returns:
            Both in the same form; there may be more transitions or fewer.
        """
        return transitions, lengths

    def train(self, train_iter: int, envstep: int) -> None:
        """Train, if it is time to; called once after each collection.

        Args:
            train_iter: Updates of the policy so far.
            envstep: Environment steps so far.
        """

    def drawn(self, batch: Columns) -> Columns:
        """Rewrite a batch of training samples just before the policy learns from it."""
        return batch

    def state_dict(self) -> State:
        """All that a resumed run needs. Subclasses add what is not in `networks`."""
        return {
            "networks": {name: one.state_dict() for name, one in self.networks.items()},
        }

    def load_state_dict(self, state_dict: State) -> None:
        """Continue from a saved state.

        Raises:
            CheckpointError: It is no state of this kind of reward model.
        """
        require_entries("a reward model", state_dict, ("networks",))
        require_entries("the reward model's networks", state_dict["networks"], (*self.networks,))
        for name, one in self.networks.items():
            one.load_state_dict(state_dict["networks"][name])

    def checkpoint(self) -> State:
        """What a checkpoint of the policy holds, for `load_state_dict`: the state without data."""
        return self.state_dict()

    def _log(self, figures: dict[str, float], train_iter: int, envstep: int) -> None:
        """Log figures by name, against updates and against environment steps."""
        if self._tb_logger is None:
            return
        for name, value in figures.items():
            self._tb_logger.add_scalar(f"reward_model_iter/{name}", value, train_iter)
            self._tb_logger.add_scalar(f"reward_model_step/{name}", value, envstep)


def create_reward_model(
    cfg: EasyDict, env: Any, device: str, tb_logger: ScalarWriter | None = None
) -> BaseRewardModel:
    """Build the registered reward model ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The section ``reward_model`` of the config; its ``obs_shape`` and ``action_shape``
            win over those of the environments.
        env: An environment, or a manager of some, with its spaces.
        device: Where networks are computed.
        tb_logger: Writer of scalars.
    """
    import_module(cfg.get("import_names", []))
    shapes = shapes_of(env, cfg)
    model: BaseRewardModel = REWARD_MODEL_REGISTRY.build(cfg.type, cfg, shapes, device, tb_logger)
    return model


def shapes_of(env: Any, cfg: Mapping[str, Any] = {}) -> Shapes:
    """The shapes of an environment; ``obs_shape`` and ``action_shape`` of ``cfg`` win."""
    found = model_shapes(env.observation_space, env.action_space)
    obs_shape, action_shape = (
        found.get(name) if cfg.get(name) is None else cfg[name]
        for name in ("obs_shape", "action_shape")
    )
    kind = action_space_of(env.action_space)
    return Shapes(
        _as_size(obs_shape),
        action_shape if isinstance(action_shape, int) else None,
        kind == "discrete",
    )


def _as_size(shape: Any) -> Any:
    is_vector = isinstance(shape, list | tuple) and len(shape) == 1
    return shape[0] if is_vector else shape


def require_obs_shape(shapes: Shapes, type_: str) -> int | Sequence[int]:
    """The shape of an observation.

    Raises:
        ConfigError: Observations are neither vectors nor images.
    """
    if shapes.obs_shape is None:
        raise ConfigError(
            f"reward_model.type={type_!r} needs observations that are vectors or images "
            "[C, H, W]: set reward_model.obs_shape if they are"
        )
    return shapes.obs_shape
