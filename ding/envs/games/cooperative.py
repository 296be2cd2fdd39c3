"""Games of a team, who share one reward: the base class, landmarks on a grid, tables of rewards."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from ding.envs.env.base_env import BaseEnv, BaseEnvTimestep
from ding.envs.vector_step import Action, Info, Obs, Space
from ding.utils.default_helper import Configurable
from ding.utils.errors import ActionError, ConfigError
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config, Settings, State


class SeededEnv(Configurable, BaseEnv):
    """Draws everything from one generator, ``self._rng``, which it seeds and saves.

    Subclasses call `_begin_episode` when they are reset.
    """

    def __init__(self, cfg: Config) -> None:
        self._cfg = {**self.config, **cfg}
        self._seed: int | None = None
        self._dynamic_seed = True
        self._rng = np.random.default_rng()

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Seed the episodes to come; without `dynamic_seed` every episode draws the same."""
        self._seed, self._dynamic_seed = int(seed), dynamic_seed
        self._rng = np.random.default_rng(self._seed)
        self.action_space.seed(self._seed)

    def _begin_episode(self) -> None:
        if self._seed is not None and not self._dynamic_seed:
            self._rng = np.random.default_rng(self._seed)

    def _whole_numbers(self, action: Action, counts: Sequence[int], who: str) -> list[int]:
        """The action as numbers, one below each of `counts`."""
        try:
            numbers = [int(one) for one in np.ravel(action)]
        except (TypeError, ValueError):
            numbers = []
        in_range = all(0 <= one < count for one, count in zip(numbers, counts))
        if len(numbers) != len(counts) or not in_range:
            raise ActionError(
                f"{type(self).__name__} got the action {action!r}; expected one for each of "
                f"{len(counts)} {who}, each 0 to {counts[0] - 1}"
            )
        return numbers

    def close(self) -> None:
        pass

    def state_dict(self) -> State:
        return {
            "seed": self._seed,
            "dynamic_seed": self._dynamic_seed,
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state_dict: Settings) -> None:
        self._seed, self._dynamic_seed = state_dict["seed"], state_dict["dynamic_seed"]
        self._rng.bit_generator.state = state_dict["rng"]


class CooperativeGame(SeededEnv):
    """Agents who act at once and share a reward, float32 ``[1]``.

    The observation is a dict of float32 arrays: ``agent_state`` ``[agents, n]``, what each agent
    sees; ``global_state`` ``[m]``, what a critic or a mixer may know while training;
    ``action_mask`` ``[agents, actions]``, zero where an action is not to be had. Games whose agents
    see each other add ``agent_alone_state`` ``[agents, k]`` without what they see of the others,
    and ``agent_alone_padding_state`` ``[agents, n]`` with zeros there. An action is int64
    ``[agents]``.

    A game says how it begins (`_begin`), continues (`_advance`) and looks (`_obs`), and sets its
    limit of steps, ``_max_steps``, or says when an episode is cut (`_is_cut`).
    """

    reward_space: Space
    _max_steps: int

    def __init__(self, cfg: Config) -> None:
        super().__init__(cfg)
        self._set_up()
        self.reward_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    @abstractmethod
    def _set_up(self) -> None:
        """Read the config; set the spaces and ``_max_steps``."""

    @abstractmethod
    def _begin(self) -> None:
        """Start an episode."""

    @abstractmethod
    def _advance(self, actions: Action) -> tuple[float, bool]:
        """Play one step; returns the team's reward and whether the game is over."""

    @abstractmethod
    def _obs(self) -> Obs:
        """The current observation."""

    def _is_cut(self) -> bool:
        return self._steps >= self._max_steps

    def _set_spaces(self, actions: int) -> None:
        self._begin()
        obs = self._obs()
        self.observation_space: Space = space_like(obs)
        self.agent_num = len(obs["agent_state"])
        self.action_space: Space = spaces.MultiDiscrete([actions] * self.agent_num)

    def reset(self) -> Obs:  # type: ignore[override]
        self._begin_episode()
        self._steps, self._return = 0, 0.0
        self._begin()
        return self._obs()

    def step(self, action: Action) -> BaseEnvTimestep:  # type: ignore[override]
        reward, terminated = self._advance(self._checked(action))
        self._steps += 1
        self._return += reward
        done = terminated or self._is_cut()
        info: Info = {}
        if done:
            info = {
                "eval_episode_return": self._return,
                "terminated": terminated,
                "truncated": not terminated,
            }
        return BaseEnvTimestep(self._obs(), np.array([reward], np.float32), done, info)

    def _checked(self, action: Action) -> Action:
        return self._whole_numbers(action, self.action_space.nvec, "agents")  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agent_num} agents)"

    def __str__(self) -> str:  # gymnasium.Env has another
        return repr(self)


def space_like(obs: Obs) -> Space:
    """The space of any float32 arrays of one shape, or of dicts of such."""
    if isinstance(obs, dict):
        return spaces.Dict({name: space_like(part) for name, part in obs.items()})
    return spaces.Box(-np.inf, np.inf, obs.shape, np.float32)


# Stay, up, down, left, right.
_MOVES = np.array([(0, 0), (0, 1), (0, -1), (-1, 0), (1, 0)])


@ENV_REGISTRY.register("grid_spread")
class GridSpreadEnv(CooperativeGame):
    """As many landmarks as agents; the game is won when agents stand on all of them.

    After `simple_spread` of Lowe et al. 2017, on a grid. Every step costs 0.1 for each landmark
    without an agent, and winning pays 1. Agents start in cells and landmarks in other
    cells, drawn for each episode.

    An agent sees its own cell, the way to each landmark, and the way to each other agent, in this
    order; ``global_state`` is the cells of all agents and landmarks. The mask leaves out moves off
    the grid; an agent that makes one stays.

    Attributes:
        agents: Their cells, int ``[agent_num, 2]``; set both to continue from a position.
        landmarks: Their cells.

    Config keys:
        agent_num: Agents, and landmarks.
        size: Cells along each side of the grid.
        max_episode_steps: Moves after which the game is lost.
    """

    config: Config = dict(agent_num=2, size=4, max_episode_steps=15)

    def _set_up(self) -> None:
        self._size, self._count = int(self._cfg["size"]), int(self._cfg["agent_num"])
        self._max_steps = int(self._cfg["max_episode_steps"])
        if self._count < 1 or self._size < 2 or self._count > self._size**2:
            raise ConfigError(
                f"env.agent_num={self._count} and env.size={self._size}: expected 1 agent or more, "
                "on a grid of 2 cells or more a side with room for all"
            )
        self._set_spaces(actions=len(_MOVES))

    def _begin(self) -> None:
        cells = self._size**2
        agents, marks = (self._rng.choice(cells, self._count, replace=False) for _ in range(2))
        self.agents = np.stack(divmod(agents, self._size), axis=1)
        self.landmarks = np.stack(divmod(marks, self._size), axis=1)

    def _advance(self, actions: list[int]) -> tuple[float, bool]:
        self.agents = np.clip(self.agents + _MOVES[actions], 0, self._size - 1)
        at = (self.landmarks[:, None] == self.agents[None]).all(-1)
        bare = int((~at.any(1)).sum())
        return (1.0, True) if bare == 0 else (-0.1 * bare, False)

    def _obs(self) -> dict[str, np.ndarray]:
        far = self._size - 1
        own = self.agents / far
        to_landmarks = (self.landmarks[None] - self.agents[:, None]) / far
        to_all = (self.agents[None] - self.agents[:, None]) / far
        others = ~np.eye(self._count, dtype=bool)
        to_others = to_all[others].reshape(self._count, -1)
        alone = np.concatenate([own, to_landmarks.reshape(self._count, -1)], axis=1)
        after = self.agents[:, None] + _MOVES
        obs = {
            "agent_state": np.concatenate([alone, to_others], axis=1),
            "agent_alone_state": alone,
            "agent_alone_padding_state": np.concatenate([alone, np.zeros_like(to_others)], axis=1),
            "global_state": np.concatenate([own, self.landmarks / far]).reshape(-1),
            "action_mask": ((after >= 0) & (after <= far)).all(-1),
        }
        return {key: part.astype(np.float32) for key, part in obs.items()}


# What each pair of actions pays. In 'two_step' the first agent's first action chooses the table.
_GAMES: dict[str, tuple[Sequence[Sequence[float]], ...]] = {
    # Rashid et al. 2018, table 1: 8 is to be had where agents that explore get less than 7.
    "two_step": (((7, 7), (7, 7)), ((0, 1), (1, 8))),
    # Claus and Boutilier 1998: one who leaves the best pair alone pays for it.
    "climbing": (((11, -30, 0), (-30, 7, 6), (0, 0, 5)),),
    # Son et al. 2019, table 1a: a sum or a monotonic mix of values cannot represent the best pair.
    "nonmonotonic": (((8, -12, -12), (-12, 0, 0), (-12, 0, 0)),),
}


@ENV_REGISTRY.register("matrix_game")
class MatrixGameEnv(CooperativeGame):
    """Cooperation at its smallest: the team is paid what the table has for the pair of actions.

    Agents see where they are (one of the tables, or before them) and which agent they are; the
    global state is where they are.

    Config keys:
        game: ``'two_step'`` (best return 8), ``'climbing'`` (11) or ``'nonmonotonic'`` (8).
        payoff: A custom table, ``[actions][actions]``, instead of `game`.
    """

    config: Config = dict(agent_num=2, game="two_step", payoff=None)

    def _set_up(self) -> None:
        if self._cfg["agent_num"] != 2:
            raise ConfigError(f"env.agent_num is {self._cfg['agent_num']}; MatrixGameEnv takes 2")
        self._tables = self._read_tables()
        self._max_steps = min(2, len(self._tables))
        self._set_spaces(actions=self._tables[0].shape[0])

    def _read_tables(self) -> list[np.ndarray]:
        game, payoff = self._cfg["game"], self._cfg["payoff"]
        if payoff is None:
            if game not in _GAMES:
                raise ConfigError(f"env.game is {game!r}; expected one of {[*_GAMES]}")
            return [np.array(table, np.float64) for table in _GAMES[game]]
        table = np.array(payoff, np.float64)
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise ConfigError(
                f"env.payoff has the shape {list(table.shape)}; expected [actions, actions]"
            )
        return [table]

    def _begin(self) -> None:
        # Table 0 at once, or a place before the tables.
        self._place = 0 if len(self._tables) == 1 else len(self._tables)

    def _advance(self, actions: list[int]) -> tuple[float, bool]:
        if self._place == len(self._tables):
            self._place = actions[0]
            return 0.0, False
        return float(self._tables[self._place][actions[0], actions[1]]), True

    def _obs(self) -> dict[str, np.ndarray]:
        places = len(self._tables) + (len(self._tables) > 1)
        state = np.zeros(places, np.float32)
        state[self._place] = 1
        actions = self._tables[0].shape[0]
        return {
            "agent_state": np.concatenate(
                [np.tile(state, (2, 1)), np.eye(2, dtype=np.float32)], axis=1
            ),
            "global_state": state,
            "action_mask": np.ones((2, actions), np.float32),
        }
