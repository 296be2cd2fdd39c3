"""The interface between a run and the models that rewrite its rewards."""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from easydict import EasyDict
from numpy.typing import ArrayLike

from ding.data import Columns, as_columns
from ding.data.offline.trajectories import in_trajectories
from ding.policy.common_utils import flatten_numbers
from ding.policy.fit import action_space_of, model_shapes
from ding.torch_utils import Adam
from ding.utils import REWARD_MODEL_REGISTRY
from ding.utils.default_helper import Configurable
from ding.utils.errors import ConfigError, DataError, require_entries
from ding.utils.log_writer import ScalarWriter
from ding.utils.registry_factory import component
from ding.utils.types import Config, Settings, State, Tree

#: Transitions by name: an array ``[N, ...]``, or a nested mapping of arrays.
Transitions: TypeAlias = dict[str, Tree]
#: Transitions of trajectories, one after the other, and the length of each, int64 ``[M]``.
Trajectories: TypeAlias = tuple[Transitions, np.ndarray]


@dataclass(frozen=True)
class Shapes:
    """Input shapes of a reward model's networks.

    Attributes:
        obs_shape: Length of an observation, or ``[C, H, W]``; ``None`` for other observations.
        action_shape: Number of choices, or length of an action; ``None`` for other actions.
        discrete: Whether actions are choices.
    """

    obs_shape: int | Sequence[int] | None
    action_shape: int | None
    discrete: bool


class HasSpaces(Protocol):
    """An environment or an env manager, as far as its spaces are read."""

    @property
    def observation_space(self) -> object: ...

    @property
    def action_space(self) -> object: ...


class RecentSteps:
    """The newest transitions as arrays, from which batches are drawn uniformly.

    Args:
        capacity: Maximum number of transitions.
    """

    def __init__(self, capacity: int = 2**62) -> None:
        self._capacity = capacity
        self.columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def add(self, columns: Mapping[str, np.ndarray]) -> None:
        """Append transitions; the oldest are evicted."""
        if self.columns:
            columns = {n: np.concatenate([self.columns[n], new]) for n, new in columns.items()}
        self.columns = {name: column[-self._capacity :] for name, column in columns.items()}

    def sample(self, size: int) -> dict[str, np.ndarray]:
        """A batch drawn with replacement, by numpy's global generator."""
        rows = np.random.randint(0, len(self), size)
        return {name: column[rows] for name, column in self.columns.items()}

    def clear(self) -> None:
        self.columns = {}

    def state_dict(self) -> State:
        return dict(self.columns)

    def load_state_dict(self, state_dict: State) -> None:
        self.columns = dict(state_dict)


class BaseRewardModel(Configurable):
    """Base class of reward models. Override the methods you need; all are no-ops here.

    The order in each round of a run is `collected` (possibly several times), `train`, and `drawn`
    before each update of the policy.

    A model whose reward depends only on a transition, and changes slowly, overrides `observe` and
    `rewarded`: n-step returns and advantages are then computed from its rewards. A model whose
    reward changes quickly may override `drawn`, for off-policy policies with one-step samples.

    A custom training loop calls `collect_data`, `train`, `estimate` and `clear_data`, with lists of
    transitions.

    Args:
        cfg: The section ``reward_model`` of the config.
        shapes: Shapes of the environments' observations and actions.
        device: Device of the networks.
        tb_logger: Writer of scalars.

    Attributes:
        networks: Named parts of `state_dict`: modules, optimisers and other objects with a state.
    """

    config: Config = dict(type="")
    #: Whether `collected` needs whole episodes, each as one trajectory.
    needs_episodes = False
    #: Whether it adds transitions that the policy did not make, which requires a replay buffer.
    needs_replay = False
    #: Attributes with plain values that are saved in `state_dict`.
    kept: tuple[str, ...] = ()

    def __init__(
        self, cfg: EasyDict, shapes: Shapes, device: str, tb_logger: ScalarWriter | None = None
    ) -> None:
        self._cfg, self._shapes, self._device = cfg, shapes, device
        self._tb_logger = tb_logger
        self.networks: dict[str, Any] = {}
        self.build()

    def build(self) -> None:
        """Create networks, when the config and the shapes are known."""

    def collected(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        """Rewrite collected transitions before they become training samples.

        Args:
            transitions: ``obs``, ``next_obs``, ``action``, ``reward`` (``[N]``), ``done``
                (``[N]``, false where an episode was truncated), ``collect_iter`` and the policy's
                columns: trajectories one after the other. The arrays are read-only.
            lengths: Number of transitions of each trajectory, int64 ``[M]``.

        Returns:
            Both in the same form; the number of transitions may differ.
        """
        self.observe(transitions, lengths)
        return self.rewarded(transitions, lengths)

    def observe(self, transitions: Transitions, lengths: np.ndarray) -> None:
        """Store new transitions for training; arguments as in `collected`."""

    def rewarded(self, transitions: Transitions, lengths: np.ndarray) -> Trajectories:
        """Transitions with this model's rewards; arguments and result as in `collected`."""
        return transitions, lengths

    def train(self, train_iter: int = 0, envstep: int = 0) -> None:
        """Train if it is time; called once after each collection.

        Args:
            train_iter: Number of updates of the policy so far.
            envstep: Number of environment steps so far.
        """

    def drawn(self, batch: Columns) -> Columns:
        """Rewrite a batch of training samples just before the policy learns from it."""
        return batch

    def collect_data(self, data: Sequence[Mapping[str, Tree]]) -> None:
        """`observe` a list of transitions, as a collector returns them."""
        self.observe(*of_rows(data))

    def estimate(self, data: Sequence[Mapping[str, Tree]]) -> list[Transitions]:
        """Copies of transitions with this model's rewards, one number each."""
        transitions, _ = self.rewarded(*of_rows(data, ("reward",)))
        reward = np.asarray(transitions["reward"], np.float32).reshape(-1, 1)
        rows = Columns({**transitions, "reward": reward})
        if len(rows) != len(data):
            return list(rows)
        return [{**row, "reward": new["reward"]} for row, new in zip(data, rows)]

    def clear_data(self, iter: int = 0) -> None:
        """Remove the stored transitions for training."""
        for part in self.networks.values():
            if isinstance(part, RecentSteps):
                part.clear()

    def state_dict(self) -> State:
        """The state that a resumed run needs: `networks` and the attributes `kept`."""
        return {
            "networks": {name: one.state_dict() for name, one in self.networks.items()},
            "kept": {name: copy.copy(getattr(self, name)) for name in self.kept},
        }

    def load_state_dict(self, state_dict: State) -> None:
        """Continue from a saved state, or from a `checkpoint`.

        Raises:
            CheckpointError: The state does not belong to this kind of reward model.
        """
        require_entries("a reward model", state_dict, ("networks", "kept"))
        networks, values = state_dict["networks"], state_dict["kept"]
        needed = [name for name, one in self.networks.items() if not isinstance(one, RecentSteps)]
        require_entries("the reward model's networks", networks, needed)
        require_entries("the reward model's values", values, self.kept)
        for name in self.networks.keys() & networks.keys():
            self.networks[name].load_state_dict(networks[name])
        for name in self.kept:
            setattr(self, name, values[name])

    def checkpoint(self) -> State:
        """The model's part of a policy's checkpoint, for `load_state_dict`: without data."""
        state = self.state_dict()
        for name, one in self.networks.items():
            if isinstance(one, RecentSteps):
                del state["networks"][name]
        return state

    def _columns(self, transitions: Transitions, *names: str) -> dict[str, np.ndarray]:
        """Columns that must be single arrays; numbers ``[N, 1]`` are reshaped to ``[N]``."""
        _require(transitions, names)
        flat = flatten_numbers(transitions)
        for name in names:
            if not isinstance(flat[name], np.ndarray | torch.Tensor):
                raise DataError(
                    f"reward_model.type={self._cfg.type!r}: {name!r} of a transition must be one "
                    f"array, got {type(flat[name]).__name__}"
                )
        return {name: np.asarray(flat[name]) for name in names}

    def _tensor(self, column: ArrayLike | torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(np.asarray(column), dtype=torch.float32, device=self._device)

    def _optimize(self, module: torch.nn.Module, lr: float, weight_decay: float = 0.0) -> None:
        """Add a module and its optimiser to the state, for `_descend`."""
        parameters = module.to(self._device).parameters()
        optimizer = Adam(parameters, lr=lr, weight_decay=weight_decay)
        self.networks.update(network=module, optimizer=optimizer)

    def _descend(self, loss: torch.Tensor) -> float:
        optimizer = self.networks["optimizer"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    def _log(
        self, figures: Mapping[str, float | list[float]], train_iter: int, envstep: int
    ) -> None:
        """Log figures by name, lists as their mean, against updates and environment steps."""
        if (writer := self._tb_logger) is None:
            return
        for name, value in figures.items():
            mean = float(np.mean(value))
            writer.add_scalar(f"reward_model_iter/{name}", mean, train_iter)
            writer.add_scalar(f"reward_model_step/{name}", mean, envstep)

    def _require_obs(self) -> int | Sequence[int]:
        """The shape of an observation, which must be a vector or an image."""
        if self._shapes.obs_shape is None:
            raise ConfigError(
                f"reward_model.type={self._cfg.type!r} needs observations that are vectors or "
                "images [C, H, W]: set reward_model.obs_shape if they are"
            )
        return self._shapes.obs_shape

    def _require_actions(self) -> int:
        """Number of choices, or length of an action."""
        if self._shapes.action_shape is None:
            raise ConfigError(
                f"reward_model.type={self._cfg.type!r} needs actions that are one choice or one "
                "vector: set reward_model.action_shape if they are"
            )
        return self._shapes.action_shape

    def _as_input(self, action: ArrayLike | torch.Tensor) -> torch.Tensor:
        """Actions as a network input ``[N, A]``: choices as one-hot vectors."""
        rows = self._tensor(action)
        if not self._shapes.discrete:
            return rows.reshape(len(rows), -1)
        choices = rows.reshape(len(rows)).long()
        return torch.nn.functional.one_hot(choices, self._require_actions()).float()


def create_reward_model(
    cfg: EasyDict,
    device: str = "cpu",
    tb_logger: ScalarWriter | None = None,
    env: HasSpaces | None = None,
) -> BaseRewardModel:
    """Build the registered reward model ``cfg.type``; ``cfg.import_names`` are imported first.

    Args:
        cfg: The section ``reward_model`` of the config; its ``obs_shape`` and ``action_shape``
            take precedence over the environments' shapes.
        device: Device of the networks.
        tb_logger: Writer of scalars.
        env: An environment or env manager with its spaces. Without it actions are choices, unless
            ``cfg.continuous`` is true.
    """
    kind, full = component(REWARD_MODEL_REGISTRY, cfg)
    model: BaseRewardModel = kind(full, shapes_of(env, cfg), device, tb_logger)
    return model


def shapes_of(env: HasSpaces | None, cfg: Settings = {}) -> Shapes:
    """Shapes of an environment, if any; ``obs_shape`` and ``action_shape`` of ``cfg`` override."""
    found = {} if env is None else model_shapes(env.observation_space, env.action_space)
    obs_shape, action_shape = (
        found.get(name) if cfg.get(name) is None else cfg[name]
        for name in ("obs_shape", "action_shape")
    )
    discrete = not cfg.get("continuous")
    if env is not None:
        discrete = action_space_of(env.action_space) == "discrete"
    action_shape = _as_size(action_shape)
    return Shapes(
        _as_size(obs_shape), action_shape if isinstance(action_shape, int) else None, discrete
    )


def _as_size(shape: Tree) -> Tree:
    is_vector = isinstance(shape, list | tuple) and len(shape) == 1
    return shape[0] if is_vector else shape


def of_rows(data: Sequence[Mapping[str, Tree]], names: Collection[str] = ()) -> Trajectories:
    """Convert rows to trajectories, with at least these columns and those that mark their order."""
    columns = as_columns(data)
    if columns is None:
        raise DataError(f"expected transitions of the same keys and shapes, got {data!r:.200}")
    _require(columns.columns, {"obs", "next_obs", "done", *names})
    return in_trajectories(columns, keeps_order=True)


def _require(transitions: Mapping[str, Tree], names: Collection[str]) -> None:
    if missing := sorted(set(names) - transitions.keys()):
        raise DataError(f"transitions need {missing}, they have {sorted(transitions)}")
