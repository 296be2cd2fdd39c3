"""Environments that live in one process: their seeds, episodes, failures and recoveries.

The base manager has one group; each worker process of the subprocess managers has one.
"""

import copy
import logging
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from gymnasium import spaces

from ding.envs.env.answers import step_fault
from ding.envs.env.ding_env_wrapper import DingEnvWrapper
from ding.envs.env_manager._action_check import each_action
from ding.envs.env_manager._env_types import (
    PER_EPISODE,
    EnvState,
    GroupSpec,
    Seed,
    close_quietly,
    env_error,
    env_name,
    find_space,
    fn_name,
    is_abnormal,
    offers,
    positional_count,
)
from ding.envs.env_manager._obs_store import holds_nan
from ding.envs.env_manager._runner import Answer, EnvRunner, GroupStep
from ding.envs.env_wrappers.gym_to_gymnasium import FoundSpace
from ding.envs.running_statistics import NormaliserGroup, Statistics
from ding.envs.seeds import (
    episode_seed,
    generator_states,
    load_generator_states,
    load_process_generator_states,
    process_generator_states,
)
from ding.envs.vector_step import Action, Actions, AnyEnv, Obs, Reward, StepResult
from ding.utils.errors import ActionError, EnvDataError, EnvError, EnvTimeoutError
from ding.utils.time_helper import CallTimeoutError, timeout_wrapper
from ding.utils.types import Config, Settings

_logger = logging.getLogger(__name__)


class EnvGroup(EnvRunner):
    """Steps and resets environments one after the other.

    One that fails in a step is recovered as the settings say: its step is `abnormal`, with the
    first observation of a new episode, no reward and not done.

    Attributes:
        envs: By env id.
        has_process: Whether they have this process for themselves, with its global generators.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self.spec, self.settings = spec, spec.settings
        self.envs: dict[int, AnyEnv] = {}
        self.states = dict.fromkeys(spec.env_fns, EnvState.VOID)
        self.has_process = False
        self._steps: dict[int, Callable[[Action], StepResult]] = {}  # as of the last reset
        #: Whether all of these are ``DingEnvWrapper.plain_step``, with gymnasium's five results.
        self._is_plain = False
        self._takes_numbers = False
        self._returns: dict[int, Reward] = dict.fromkeys(spec.env_fns, 0.0)
        self._renewals = dict.fromkeys(spec.env_fns, spec.renewals)
        self._failures: dict[int, int] = {}  # steps that failed, since one that did not
        self._to_seed = set(spec.seeds)  # whose next reset takes its seed
        self._normalisers = NormaliserGroup()

    def start(self) -> dict[str, FoundSpace]:
        for env_id in self.spec.env_fns:
            self._build_env(env_id)
        names = ("observation_space", "action_space", "reward_space")
        return {name: find_space(self.envs[0], name) for name in names if 0 in self.envs}

    def stop(self, wait: bool = True) -> None:
        """Close every environment; a failure is logged, not raised."""
        for env_id in list(self.envs):
            self._close_env(env_id)
        self._steps.clear()

    # ---- episodes -----------------------------------------------------------------------------

    def restart(self, params: Mapping[int, Config | None], recount: bool) -> GroupStep:
        first: dict[int, Obs] = {}
        self.spec.note_restart(params, recount)
        for env_id in params if recount else ():
            if self.spec.seeds.get(env_id, (0, None))[1] == PER_EPISODE:
                self._renewals[env_id] = 0  # the list of starts begins again
        try:
            for env_id in params:
                first[env_id] = self._reset(env_id)
        except Exception:
            self.states.update(dict.fromkeys(params, EnvState.ERROR))
            raise
        return GroupStep(first=first)

    def step(self, ids: Sequence[int], actions: Actions, rows: bool = False) -> GroupStep:
        results: list[StepResult] = []
        failed: list[int] = []
        steps, append = self._steps, results.append
        todo = zip(ids, _numbers(actions) if self._takes_numbers else each_action(actions))
        try:
            while True:
                try:
                    for env_id, action in todo:
                        append(steps[env_id](action))
                    break
                # Some simulators call sys.exit() when they fail, which would end the run without a
                # cause.
                except (Exception, SystemExit) as error:
                    env_id = ids[len(results)]
                    obs = self._recover(env_id, error)
                    failed.append(env_id)
                    info = {"abnormal": True, "error": f"{type(error).__name__}: {error}"}
                    flags = (False, False) if self._is_plain else (False,)
                    results.append((obs, None, *flags, info))
            return self._gathered(ids, results, failed, rows)
        except Exception as error:
            # Those that were stepped before it have lost their answers.
            self.states.update(dict.fromkeys(self.ready(), EnvState.ERROR))
            if isinstance(error, TypeError | ValueError | AttributeError | LookupError):
                self._refuse(ids, results)
            raise

    def _gathered(
        self, ids: Sequence[int], results: list[StepResult], failed: list[int], rows: bool
    ) -> GroupStep:
        """What the environments returned as one answer; next episodes have begun."""
        if self._failures:
            passed = set(ids).difference(failed)
            self._failures = {i: n for i, n in self._failures.items() if i not in passed}
        columns = tuple(zip(*results, strict=True))
        if len(columns) != 4 + self._is_plain:
            self._refuse(ids, results)
        obs, rewards, *flags, infos = map(list, columns)
        if self._is_plain:
            for env_id, reward in zip(ids, rewards):
                if reward is not None:
                    self._returns[env_id] += reward
            if rows:
                rewards = [r if r is None else np.asarray(r, np.float32).ravel() for r in rewards]
        ended: list[int] = []
        if any(map(any, flags)):
            ended = [at for at, own in enumerate(zip(*flags)) if any(own)]
            self._refuse([ids[at] for at in ended], [results[at] for at in ended])
        step = GroupStep(ids, obs, rewards, infos, abnormal=failed)
        for at, info in enumerate(infos) if any(infos) else ():
            # Environments may report that they failed.
            if info and ids[at] not in failed and is_abnormal(info):
                failed.append(ids[at])
                obs[at], rewards[at] = self._reset(ids[at]), None
        for at in ended:
            env_id = ids[at]
            if env_id in failed:
                continue
            step.ended.append(env_id)
            if self._is_plain:
                final_info, is_terminal = self.envs[env_id].final_info, bool(flags[0][at])
                infos[at] = final_info(infos[at], is_terminal, self._returns[env_id])
            self.spec.episode_count[env_id] += 1
            if self.spec.has_played(env_id):
                self.states[env_id] = EnvState.DONE
            elif self.settings.auto_reset:
                # The reset may write over the last observation.
                obs[at] = copy.deepcopy(obs[at])
                step.first[env_id] = self._reset(env_id)
            else:
                self.states[env_id] = EnvState.NEED_RESET
        return step

    def _refuse(self, ids: Sequence[int], results: Sequence[object]) -> None:
        """Raise an `EnvError` for the first result that ``step`` must not return, if there is one.

        This is too slow for every step: it is called for episodes' ends, and where reading the
        results has failed.
        """
        for env_id, result in zip(ids, results):
            fault = step_fault(result, 4 + self._is_plain)
            if fault is not None:
                name = env_name(self.envs[env_id])
                raise EnvError(f"env {env_id} ({name}): {fault}", env_id)

    # ---- what callers ask for -----------------------------------------------------------------

    def seed(self, seeds: Mapping[int, Seed]) -> None:
        self.spec.seeds.update(seeds)
        self._to_seed.update(seeds)

    def save_replays(self, paths: Mapping[int, str]) -> None:
        self.spec.replay_paths.update(paths)
        for env_id in self.envs:
            if env_id in paths:
                self.call(env_id, "enable_save_replay", (paths[env_id],))

    def attribute(self, env_id: int, name: str) -> tuple[bool, Answer]:
        env = self.envs[env_id]
        found = getattr(env, name, None)
        if self.has_process and callable(found):
            raise EnvError(f"{name!r} is a method of environments in other processes")
        return hasattr(env, name), found

    def call(self, env_id: int, name: str, args: tuple[object, ...] = ()) -> Answer:
        try:
            return getattr(self.envs[env_id], name)(*args)
        except Exception as error:
            raise self._error(env_id, name, error) from error

    def image(self, env_id: int, render_mode: str) -> np.ndarray:
        # gymnasium's takes no mode, older ones need it
        takes_mode = positional_count(self.envs[env_id].render) > 0
        return self.call(env_id, "render", (render_mode,) if takes_mode else ())

    def random_action(self, env_id: int) -> Action:
        env = self.envs[env_id]
        if hasattr(env, "random_action"):
            return self.call(env_id, "random_action")
        return env.action_space.sample()

    def normalises(self) -> bool:
        return bool(self._normalisers.statistics)

    def take_statistics(self) -> Statistics | None:
        return self._normalisers.take()

    def load_statistics(self, state: Statistics, frozen: bool) -> None:
        self._normalisers.load(state, frozen)

    # ---- state --------------------------------------------------------------------------------

    def env_states(self) -> dict[int, Config]:
        states = {}
        for env_id in self.spec.env_fns:
            env: AnyEnv = self.envs.get(env_id)
            states[env_id] = {
                "seed": self.spec.seeds.get(env_id),
                "to_seed": env_id in self._to_seed,
                "renewals": self._renewals[env_id],
                "episode_count": self.spec.episode_count[env_id],
                "env": env.state_dict() if hasattr(env, "state_dict") else None,
                "generators": generator_states(env),
                "process": None,
            }
        if self.has_process:
            states[min(states)]["process"] = process_generator_states()
        return states

    def load_env_states(self, state: Sequence[Settings]) -> None:
        for env_id, env in self.envs.items():
            saved = state[env_id]
            seed, self._renewals[env_id] = saved["seed"], saved["renewals"]
            self.spec.episode_count[env_id] = saved["episode_count"]
            if seed is not None:
                self.spec.seeds[env_id] = tuple(seed)
            self._to_seed.discard(env_id)
            if self.has_process and saved["process"] is not None:
                load_process_generator_states(saved["process"])
            if saved["env"] is not None and hasattr(env, "load_state_dict"):
                env.load_state_dict(saved["env"])
            load_generator_states(env, saved["generators"])
            is_restored = saved["env"] is not None or saved["generators"]
            if not is_restored and seed is not None and seed[1] is not False:
                # It must not play its first episodes again.
                self._renewals[env_id] += 1
                self._to_seed.add(env_id)
            elif saved["to_seed"]:
                self._to_seed.add(env_id)

    # ---- making, resetting and closing --------------------------------------------------------

    def _build_env(self, env_id: int) -> None:
        fn = self.spec.env_fns[env_id]
        try:
            env = fn()
            if env_id in self.spec.replay_paths:
                env.enable_save_replay(self.spec.replay_paths[env_id])
        except (Exception, SystemExit) as error:
            self.states[env_id] = EnvState.ERROR
            raise env_error(env_id, fn_name(fn), "could not be made", error) from error
        self.envs[env_id] = env
        self._is_plain = all(offers(env, "plain_step", "step") for env in self.envs.values())
        self.states[env_id] = EnvState.DONE if self.spec.has_played(env_id) else EnvState.INIT

    def _close_env(self, env_id: int) -> None:
        if env_id in self.envs:
            close_quietly(self.envs.pop(env_id), str(env_id))
        self.states[env_id] = EnvState.VOID

    def _recover(self, env_id: int, error: BaseException) -> Obs:
        """First observation of a new episode, after a step that failed with `error`."""
        failure = self._error(env_id, "step", error)
        self.states[env_id] = EnvState.ERROR
        self._failures[env_id] = self._failures.get(env_id, 0) + 1
        is_last = self._failures[env_id] >= self.settings.max_retry
        # An action that cannot be taken is the policy's fault, which another episode would hide.
        if is_last or isinstance(error, ActionError):
            raise failure from error
        return self._reset(env_id, failure)

    def _reset(self, env_id: int, failure: EnvError | None = None) -> Obs:
        """A copy of the first observation of a new episode; a `failure` before it was a try."""
        tries = self.settings.max_retry - (failure is not None)
        while True:
            if failure is not None:
                _logger.warning("%s; starting a new episode", failure)
                time.sleep(self.settings.retry_waiting_time)
            try:
                if failure is not None and self.settings.retry_type == "renew":
                    self._close_env(env_id)
                    self._build_env(env_id)
                    self._renewals[env_id] += 1
                    self._to_seed.add(env_id)
                return self._reset_once(env_id)
            except (Exception, SystemExit) as error:
                self.states[env_id] = EnvState.ERROR
                failure, tries = self._error(env_id, "reset", error), tries - 1
                if not tries:
                    raise failure from error

    def _reset_once(self, env_id: int) -> Obs:
        self.states[env_id] = EnvState.RESET
        seed = self.spec.seeds.get(env_id)
        if seed is not None and (env_id in self._to_seed or seed[1] == PER_EPISODE):
            self._seed_env(env_id, *seed)
            self._to_seed.discard(env_id)
        self._returns[env_id] = 0.0
        env = self.envs[env_id]
        reset = timeout_wrapper(env.reset, self.settings.reset_timeout)
        is_wrapper = isinstance(env, DingEnvWrapper)
        if is_wrapper:
            # Before its reset, so that its wrappers have the run's statistics for the first
            # observation.
            env.build()
            self._normalisers.adopt(env_id, env)
        kwargs = self.spec.reset_kwargs.get(env_id, {})
        obs = reset(**kwargs)
        if not is_wrapper and self._normalisers.adopt(env_id, env):
            # Its first observation was not normalised by what the others have seen.
            obs = reset(**kwargs)
        if holds_nan(obs):
            raise EnvDataError(
                f"env {env_id} ({env_name(env)}) gave an observation with NaN at its reset", env_id
            )
        step = env.plain_step() if self._is_plain else env.step
        self._steps[env_id] = timeout_wrapper(step, self.settings.step_timeout)
        self._takes_numbers = self._is_plain and isinstance(env.action_space, spaces.Discrete)
        self.states[env_id] = EnvState.RUN
        return copy.deepcopy(obs)  # environments may share what they hand out

    def _seed_env(self, env_id: int, seed: int, dynamic: bool | str | None) -> None:
        if dynamic == PER_EPISODE:
            seed, dynamic = episode_seed(seed, self.spec.episode_count[env_id]), False
        if self._renewals[env_id]:
            # A rebuilt environment must not run into the same failure by the same draws.
            mixed = np.random.SeedSequence([seed, self._renewals[env_id]])
            seed = int(mixed.generate_state(1)[0] >> 1)
        seed_fn = getattr(self.envs[env_id], "seed", None)
        if seed_fn is not None:
            takes_dynamic = dynamic is not None and positional_count(seed_fn) > 1
            seed_fn(seed, dynamic) if takes_dynamic else seed_fn(seed)

    def _error(self, env_id: int, doing: str, error: BaseException) -> EnvError:
        env: AnyEnv = self.envs.get(env_id)
        name = fn_name(self.spec.env_fns[env_id]) if env is None else env_name(env)
        if isinstance(error, CallTimeoutError):
            limit = f"{doing}_timeout={getattr(self.settings, f'{doing}_timeout')} s"
            return EnvTimeoutError(
                f"env {env_id} ({name}) did not finish {doing}() within {limit}", env_id
            )
        if isinstance(error, EnvError) and error.env_id == env_id:
            return error
        return env_error(env_id, name, f"failed in {doing}()", error)


def _numbers(actions: Actions) -> list[int]:
    """Python's whole numbers, the quickest for environments to check and compare."""
    if isinstance(actions, np.ndarray) and actions.dtype.kind != "O":
        return actions.tolist() if actions.ndim == 1 else actions.ravel().tolist()
    return [np.asarray(action).item() for action in actions]
