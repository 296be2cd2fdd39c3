"""What callers ask of single environments, wherever a manager runs them."""

from collections.abc import Callable, Mapping

import numpy as np
from easydict import EasyDict

from ding.envs.env_manager._env_types import (
    PER_EPISODE,
    Seed,
    by_env_id,
    env_error,
    find_space,
    fn_name,
)
from ding.envs.env_manager._runner import Answer, EnvRunner
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.running_statistics import Statistics, merged
from ding.envs.seeds import env_seeds
from ding.envs.vector_step import Action, AnyEnv, EnvFn
from ding.utils.errors import DataError, EnvError
from ding.utils.types import Config, SavedState, Settings, State

_METHODS = (
    *("reset", "step", "seed", "close", "render"),
    *("enable_save_replay", "enable_save_figure", "reward_shaping", "random_action"),
)


class EnvRequests:
    """The part of an env manager that neither steps nor resets: seeds, statistics, state, calls."""

    ready_obs_id: list[int]
    reset: Callable[..., object]

    def __init__(self, env_fn: list[EnvFn], cfg: EasyDict) -> None:
        self._runner: EnvRunner | None = None
        self._cfg = cfg
        self._env_fn = list(env_fn)
        self._env_num = len(self._env_fn)
        self._reference: AnyEnv = None
        self._spaces: dict[str, FoundSpace] = {}
        self._seeds: dict[int, Seed] = {}
        self._env_replay_path: dict[int, str] = {}
        self._saved_state: SavedState | None = None

    @property
    def ready_imgs(self, render_mode: str | None = "rgb_array") -> dict[int, np.ndarray]:
        """Env id to picture, as ``render`` gives it."""
        mode = render_mode or "rgb_array"
        return {i: self._ask(i, "image", mode) for i in self.ready_obs_id}

    def random_action(self) -> dict[int, Action]:
        """An action for each environment that waits for one."""
        return {i: self._ask(i, "random_action") for i in self.ready_obs_id}

    def seed(
        self, seed: dict[int, int] | list[int] | int, dynamic_seed: bool | None = None
    ) -> None:
        """Set the seeds that the next reset of each environment takes.

        Args:
            seed: One per environment, by id or in order; a single number spawns one for each.
            dynamic_seed: Whether every episode has another seed; ``None``: what the environment
                does by default.
        """
        if isinstance(seed, int | np.integer):
            # Fixed seeds are others than those that episodes vary.
            role = "fixed" if dynamic_seed is False else "varied"
            seed = env_seeds(int(seed), role, self._env_num)
        by_id = by_env_id(seed, self._env_num, "seed")
        self._set_seeds({i: (int(own), dynamic_seed) for i, own in by_id.items()})

    def number_starts(self) -> None:
        """Make fixed seeds (``dynamic_seed=False``) fix a list of episodes, rather than one.

        The k-th episode after each full reset then has the same start: evaluators judge by
        different starts that evaluations share.
        """
        fixed = {
            env_id: (seed, PER_EPISODE)
            for env_id, (seed, dynamic) in self._seeds.items()
            # PER_EPISODE, too: environments whose state was loaded may not have it.
            if dynamic is False or dynamic == PER_EPISODE
        }
        if fixed:
            self._set_seeds(fixed)

    @property
    def normalises(self) -> bool:
        """Whether environments normalise by statistics of what they have seen."""
        return any(self._ask_all("normalises"))

    def take_statistics(self) -> Statistics | None:
        """What normalising environments have seen since the last call; ``None`` without any."""
        parts = [part for part in self._ask_all("take_statistics") if part]
        return merged(parts) if parts else None

    def load_statistics(self, state: Statistics, frozen: bool = False) -> None:
        """Normalise by the statistics of a run, in all environments.

        With `frozen` nothing is added from now on, as in evaluations; otherwise what was not taken
        yet is kept, too.
        """
        self._ask_all("load_statistics", state, frozen)

    def _set_seeds(self, seeds: Mapping[int, Seed]) -> None:
        self._seeds.update(seeds)
        if self._runner is not None:
            self._runner.ask_all("seed", seeds)

    def enable_save_replay(self, replay_path: list[str] | str) -> None:
        """Save videos from the next reset on, in a folder or in one per environment."""
        paths = [replay_path] * self._env_num if isinstance(replay_path, str) else replay_path
        self._env_replay_path.update(by_env_id(paths, self._env_num, "replay path"))
        self._ask_all("save_replays", self._env_replay_path)

    def enable_save_figure(self, env_id: int, figure_path: str) -> None:
        self._ask(env_id, "call", "enable_save_figure", (figure_path,))

    def reward_shaping(self, env_id: int, transitions: list[Config]) -> list[Config]:
        """An episode's transitions after the environment's own ``reward_shaping``."""
        return self._ask(env_id, "call", "reward_shaping", (transitions,))

    @property
    def env_num(self) -> int:
        return self._env_num

    @property
    def env_ref(self) -> AnyEnv:
        """An environment of the same kind that is not part of the manager."""
        if self._reference is None:
            try:
                self._reference = self._env_fn[0]()
            except Exception as error:
                name = fn_name(self._env_fn[0])
                raise env_error(0, name, "could not be made", error) from error
        return self._reference

    _env_ref = env_ref  # the name that users' managers know

    @property
    def observation_space(self) -> FoundSpace:
        return self._space("observation_space")

    @property
    def action_space(self) -> FoundSpace:
        return self._space("action_space")

    @property
    def reward_space(self) -> FoundSpace:
        return self._space("reward_space")

    @property
    def method_name_list(self) -> list[str]:
        """The methods of environments that the manager calls."""
        return list(self._cfg.get("method_name_list", _METHODS))

    def state_dict(self) -> State:
        """Seeds, episode counts and the environments' own states; not episodes in flight."""
        seeds = [self._seeds.get(env_id) for env_id in range(self._env_num)]
        envs = {"envs": []} if self._runner is None else self._runner.state_dict()
        return {"seeds": seeds, **envs}

    def load_state_dict(self, state_dict: Settings) -> None:
        """Restore a state of as many environments: at the next launch, or now with new episodes."""
        seeds = state_dict["seeds"]
        if len(seeds) != self._env_num:
            raise DataError(
                f"the saved state is of {len(seeds)} environments, the manager has {self._env_num}"
            )
        self._seeds.clear()
        self._seeds.update({i: tuple(s) for i, s in enumerate(seeds) if s is not None})
        if self._runner is None:
            self._saved_state = state_dict
        else:
            self._runner.load_state_dict(state_dict)
            self.reset(dict.fromkeys(range(self._env_num)))

    def __getattr__(self, name: str) -> list[Answer]:
        # Attributes of the environments, as a list over them.
        if name.startswith("__") or self.__dict__.get("_runner") is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = [self._ask(i, "attribute", name) for i in range(self._env_num)]
        if not any(has for has, _ in found):
            raise AttributeError(f"neither {type(self).__name__} nor its environments have {name}")
        return [value for _, value in found]

    # ---- inside -------------------------------------------------------------------------------

    def _ask(self, env_id: int, method: str, *args: object) -> Answer:
        return self._launched().ask(method, env_id, *args)

    def _ask_all(self, method: str, *args: object) -> list[Answer]:
        """The answers of all groups; none before the launch."""
        return [] if self._runner is None else self._runner.ask_all(method, *args)

    def _launched(self) -> EnvRunner:
        if self._runner is None:
            raise EnvError("the env manager is closed or was not launched yet; call launch() first")
        return self._runner

    def _space(self, name: str) -> FoundSpace:
        if name not in self._spaces:
            self._spaces[name] = find_space(self.env_ref, name)
        return self._spaces[name]
