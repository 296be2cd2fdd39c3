"""Teams in PettingZoo's parallel environments, such as the particle worlds of MPE."""

import importlib
import pkgutil
import re
from typing import Any

import numpy as np
from gymnasium import spaces

from ding.envs.env._make import Simulator
from ding.envs.games.cooperative import CooperativeGame, space_like
from ding.envs.vector_step import Action, AnyEnv, Obs
from ding.utils.errors import ActionError, ConfigError, EnvError
from ding.utils.registry_factory import ENV_REGISTRY
from ding.utils.types import Config, Settings

#: PettingZoo's families; MPE has become a separate package.
_MPE = Simulator("mpe2", "pettingzoo mpe2", "pettingzoo")
_OTHERS = Simulator("pettingzoo", "pettingzoo", "pettingzoo")
_SPREAD = "simple_spread"
_VERSION = re.compile(r"(\w+?)_v\d+")


@ENV_REGISTRY.register("petting_zoo")
class PettingZooEnv(CooperativeGame):
    """All agents act at once and share a reward, the sum of theirs, float32 ``[1]``.

    The observation is a dict of float32 arrays: ``agent_state`` ``[agents, n]``, what each agent
    sees; ``global_state`` ``[m]``; and ``action_mask`` ``[agents, actions]``, all ones, where
    actions are discrete. An action is int64 ``[agents]``, or float32 ``[agents, size]``.

    In ``simple_spread`` (Lowe et al. 2017) the global state is the velocities and places of all
    agents, the landmarks' places, and what all say: ``4 * agents + 2 * landmarks + 2 * agents *
    (agents - 1)`` numbers. ``agent_alone_state`` ``[agents, 4 + 2 * landmarks]`` is what an agent
    sees without the others, ``agent_alone_padding_state`` ``[agents, n]`` has zeros for them. In
    other environments the global state is what all agents see.

    Config keys:
        env_family: ``'mpe'``, or another module of pettingzoo.
        env_id: Such as ``simple_spread_v3``; an old version becomes the one that exists.
        n_agent, n_landmark: Of ``simple_spread``, which has as many landmarks as agents.
            (``agent_num`` is another name of the first.)
        max_cycles: Steps after which an episode is truncated. (``max_step``)
        continuous_actions: Whether actions are vectors.
        act_scale: Vectors come in ``[-1, 1]`` and are mapped to the environment's bounds.
        agent_obs_only: The observation is ``agent_state`` alone.
        agent_specific_global_state: Each agent gets the global state, after what it sees:
            ``[agents, n + m]``.
        kwargs: More arguments of the environment.
    """

    config: Config = dict(
        env_family="mpe",
        env_id="simple_spread_v3",
        n_agent=None,
        agent_num=None,
        n_landmark=None,
        n_landmarks=None,
        max_cycles=25,
        max_step=None,
        continuous_actions=False,
        act_scale=False,
        agent_obs_only=False,
        agent_specific_global_state=False,
        # Accepted, but there is no picture to save.
        replay_path=None,
        kwargs=None,
    )

    def _set_up(self) -> None:
        self._is_spread = self._cfg["env_id"].startswith(_SPREAD)
        self._env = _make(self._cfg, self._arguments())
        self._agents = list(self._env.possible_agents)
        self.agent_num = len(self._agents)
        self._find_spaces()

    def _arguments(self) -> Config:
        cfg = self._cfg
        out: Config = {"max_cycles": cfg["max_step"] or cfg["max_cycles"]}
        if cfg["env_family"] == "mpe":
            out["continuous_actions"] = bool(cfg["continuous_actions"])
        if self._is_spread:
            agents = _first_given(cfg, "n_agent", "agent_num") or 3
            landmarks = _first_given(cfg, "n_landmark", "n_landmarks") or agents
            if landmarks != agents:
                raise ConfigError(
                    f"env.n_landmark={landmarks} and env.n_agent={agents}: simple_spread has as "
                    "many landmarks as agents"
                )
            out["N"] = agents
        return {**out, **(cfg["kwargs"] or {})}

    def _find_spaces(self) -> None:
        seen = [self._env.observation_space(agent) for agent in self._agents]
        acts = [self._env.action_space(agent) for agent in self._agents]
        if len({space.shape for space in seen}) > 1 or len({str(space) for space in acts}) > 1:
            raise ConfigError(
                f"env.env_id={self._cfg['env_id']!r}: its agents differ in what they see or do; "
                "teams here are of one kind"
            )
        self._action = acts[0]
        if isinstance(self._action, spaces.Box):
            shape = (self.agent_num, *self._action.shape)
            bounds = (self._action.low, self._action.high)
            low, high = (-1.0, 1.0) if self._cfg["act_scale"] else bounds
            low, high = np.broadcast_to(low, shape), np.broadcast_to(high, shape)
            self.action_space = spaces.Box(low, high, shape, np.float32)
        elif isinstance(self._action, spaces.Discrete):
            self.action_space = spaces.MultiDiscrete([int(self._action.n)] * self.agent_num)
        else:
            raise ConfigError(f"env.env_id={self._cfg['env_id']!r}: actions are {self._action}")
        self._begin()
        self.observation_space = space_like(self._obs())

    def _begin(self) -> None:
        self._seen, _ = self._env.reset(seed=int(self._rng.integers(2**31)))

    def _advance(self, actions: dict[str, Action]) -> tuple[float, bool]:
        self._seen, rewards, terminations, truncations, _ = self._env.step(actions)
        # An agent that is done leaves the world: for a team, its episode ends there.
        self._some_left = any(terminations.values()) or any(truncations.values())
        return float(sum(rewards.values())), all(terminations.values())

    def _is_cut(self) -> bool:
        return self._some_left

    def close(self) -> None:
        self._env.close()

    def _checked(self, action: Action) -> dict[str, Action]:
        array, space = np.asarray(action), self._action
        if array.size != self.agent_num * int(np.prod(space.shape, dtype=int)):
            raise ActionError(
                f"an action of shape {list(array.shape)} came; expected one for each of "
                f"{self.agent_num} agents, of {space}"
            )
        array = array.reshape(self.agent_num, *space.shape)
        if isinstance(space, spaces.Discrete):
            return {agent: int(one) for agent, one in zip(self._agents, array)}
        if self._cfg["act_scale"]:
            array = space.low + (np.clip(array, -1, 1) + 1) / 2 * (space.high - space.low)
        array = np.clip(array, space.low, space.high).astype(np.float32)
        return dict(zip(self._agents, array))

    def _obs(self) -> Obs:
        agents = np.stack([self._seen[agent] for agent in self._agents]).astype(np.float32)
        agents = agents.reshape(self.agent_num, -1)
        if self._cfg["agent_obs_only"]:
            return agents
        out = {"agent_state": agents}
        state: np.ndarray = agents.reshape(-1)
        if self._is_spread:
            state, alone = self._overview(agents), 4 + 2 * self.agent_num
            out["agent_alone_state"] = agents[:, :alone]
            out["agent_alone_padding_state"] = np.where(
                np.arange(agents.shape[1]) < alone, agents, np.float32(0)
            )
        if self._cfg["agent_specific_global_state"]:
            shared = np.broadcast_to(state, (self.agent_num, len(state)))
            state = np.concatenate([agents, shared], axis=1)
        out["global_state"] = state
        if isinstance(self._action, spaces.Discrete):
            out["action_mask"] = np.ones((self.agent_num, int(self._action.n)), np.float32)
        return out

    def _overview(self, agents: np.ndarray) -> np.ndarray:
        """The global state of ``simple_spread``, from the ways that the first agent sees."""
        places = agents[0, 4 : 4 + 2 * self.agent_num].reshape(-1, 2) + agents[0, 2:4]
        said = agents[:, agents.shape[1] - 2 * (self.agent_num - 1) :]
        return np.concatenate([agents[:, :4].reshape(-1), places.reshape(-1), said.reshape(-1)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._cfg['env_id']}, {self.agent_num} agents)"


def _make(cfg: Settings, arguments: Config) -> AnyEnv:
    family, env_id = cfg["env_family"], cfg["env_id"]
    simulator = _MPE if family == "mpe" else _OTHERS
    package = "mpe2" if family == "mpe" else f"pettingzoo.{family}"
    try:
        root = importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise EnvError(f"cannot make env {env_id!r} of {family!r}: {simulator.cure}") from error
    names = [module.name for module in pkgutil.iter_modules(root.__path__)]
    match = _VERSION.fullmatch(env_id)
    wanted = match[1] if match else env_id
    found = [name for name in names if name == env_id] or [
        name for name in names if (m := _VERSION.fullmatch(name)) and m[1] == wanted
    ]
    if not found:
        raise ConfigError(
            f"env.env_id is {env_id!r}; {package} has "
            f"{', '.join(name for name in names if _VERSION.fullmatch(name))}"
        )
    module = importlib.import_module(f"{package}.{max(found)}")
    return module.parallel_env(**arguments)


def _first_given(cfg: Settings, *names: str) -> Any:
    return next((cfg[name] for name in names if cfg[name] is not None), None)
