"""Small environments with known behaviour, and with every fault."""

import os
import signal
import threading

import gymnasium
import numpy as np
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvTimestep


class CountEnv(BaseEnv):
    """Counts its steps in an observation array that it reuses; an episode has `length` steps.

    obs = [id, episode, step, seed], reward = step. `changes` are made to each timestep.
    """

    changes: dict = {}

    def __init__(self, cfg: dict | None = None) -> None:
        self.cfg = {"id": 0, "length": 3, **(cfg or {})}
        self.observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.reward_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)
        self._obs = np.zeros(4, np.float32)
        self._obs[0] = self.cfg["id"]
        self._seed = 0
        self.last_action = None
        self.reset_kwargs: dict = {}
        self.closed = False

    def reset(self, **kwargs):
        self.reset_kwargs = kwargs
        self._obs[1] += 1
        self._obs[2] = 0
        self._obs[3] = self._seed
        self._return = 0.0
        return self._obs

    def step(self, action):
        self.last_action = action
        self._obs[2] += 1
        reward = float(self._obs[2])
        self._return += reward
        done = bool(self._obs[2] >= self.cfg["length"])
        info = {}
        if done:
            truncated = bool(self.cfg.get("truncate", False))
            info = {"eval_episode_return": self._return, "truncated": truncated}
        timestep = BaseEnvTimestep(self._obs, np.array([reward], np.float32), done, info)
        return timestep._replace(**self.changes)

    def seed(self, seed, dynamic_seed=True):
        self._seed = seed
        self.dynamic_seed = dynamic_seed

    def close(self):
        self.closed = True

    def reward_shaping(self, transitions):
        return [{**t, "reward": t["reward"] * 2} for t in transitions]

    def render(self):
        return np.full((2, 2, 3), self.cfg["id"], np.uint8)

    @property
    def own_pid(self):
        return os.getpid()

    def state_dict(self):
        return {"episode": float(self._obs[1]), "seed": self._seed}

    def load_state_dict(self, state):
        self._obs[1], self._seed = state["episode"], state["seed"]


#: Ends what hangs in this process.
RELEASE = threading.Event()


class FaultyEnv(CountEnv):
    """Does what ``cfg['fault']`` says, in the episodes and at the steps given.

    ``once`` makes the fault happen only in the first instance that reaches it (a file marks it).
    """

    def __init__(self, cfg=None):
        super().__init__(cfg)
        if self.cfg.get("where") == "init":
            self._fault()

    def reset(self, **kwargs):
        obs = super().reset(**kwargs)
        if self.cfg.get("where") == "reset" and obs[1] >= self.cfg.get("episode", 1):
            self._fault()
        return obs

    def step(self, action):
        timestep = super().step(action)
        if self.cfg.get("where", "step") == "step" and self._obs[2] == self.cfg.get("at", 2):
            return self._fault(timestep) or timestep
        return timestep

    def _fault(self, timestep=None):
        once = self.cfg.get("once")
        if once is not None:
            if os.path.exists(once):
                return None
            with open(once, "w"):
                pass
        fault = self.cfg["fault"]
        if fault == "raise":
            raise ValueError("the env's own words")
        if fault == "hang":
            RELEASE.wait(1000)
        elif fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "exit":
            os._exit(3)
        wrong = {
            "nan_reward": dict(reward=np.array([np.nan], np.float32)),
            "nan_obs": dict(obs=np.full(4, np.nan, np.float32)),
            "shape": dict(obs=np.zeros(5, np.float32)),
            "abnormal": dict(info={"abnormal": True}),
        }
        return timestep._replace(**wrong[fault]) if fault in wrong else None


class DictObsEnv(CountEnv):
    def __init__(self, cfg=None):
        super().__init__(cfg)
        self.observation_space = spaces.Dict(
            {
                "vector": spaces.Box(-np.inf, np.inf, (4,), np.float32),
                "nested": spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8)}),
            }
        )

    def _dict(self):
        image = np.full((2, 2), int(self._obs[2]), np.uint8)
        return {"vector": self._obs, "nested": {"image": image}}

    def reset(self, **kwargs):
        super().reset(**kwargs)
        return self._dict()

    def step(self, action):
        return BaseEnvTimestep(self._dict(), *super().step(action)[1:])


class TupleObsEnv(CountEnv):
    def reset(self, **kwargs):
        return (super().reset(**kwargs), "text")

    def step(self, action):
        obs, *rest = super().step(action)
        return BaseEnvTimestep((obs, "text"), *rest)


class TwoPlayerEnv(CountEnv):
    def step(self, action):
        obs, (reward,), *rest = super().step(action)
        return BaseEnvTimestep(obs, np.array([reward, -reward], np.float32), *rest)


class BoxActionEnv(CountEnv):
    def __init__(self, cfg=None):
        super().__init__(cfg)
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def step(self, action):
        action *= 0  # environments that change what they are given
        return super().step(action)


class ShortEnv(gymnasium.Env):
    """A gymnasium environment: terminates, or is truncated, after `length` steps."""

    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length=3, truncate=False):
        self.length, self.truncate = length, truncate

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        self.start = float(self.np_random.integers(1000))
        return np.array([self.start, 0], np.float32), {}

    def step(self, action):
        self.count += 1
        over = self.count >= self.length
        obs = np.array([self.start, self.count], np.float32)
        return obs, float(self.count), over and not self.truncate, over and self.truncate, {}


def zeros(manager):
    """Actions for the environments that wait for one."""
    return dict.fromkeys(manager.ready_obs_id, np.int64(0))


def env_fns(cls, count=4, **cfg):
    return [EnvFn(cls, {**cfg, "id": i}) for i in range(count)]


def one_faulty(count=4, faulty=1, **cfg):
    """Environments of which only `faulty` has the fault."""
    fns = env_fns(CountEnv, count)
    fns[faulty] = EnvFn(FaultyEnv, {**cfg, "id": faulty})
    return fns


class EnvFn:
    """A function that makes an environment, picklable for processes that are spawned."""

    def __init__(self, cls, cfg):
        self.cls, self.cfg = cls, cfg
        self.__name__ = cls.__name__

    def __call__(self):
        return self.cls(dict(self.cfg))
