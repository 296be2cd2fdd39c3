"""An environment and a policy that cost next to nothing: all that a run then moves is data.

Registered as ``feed``. The learner adds a line to the file ``$FEED_LOG`` twice a second: time,
rows and bytes of its batches so far; collectors one for each policy that they load: how long ago
it was published.
"""

import json
import os
import time
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from ding.envs import BaseEnv, BaseEnvTimestep
from ding.policy import CommandModePolicy
from ding.utils import ENV_REGISTRY, POLICY_REGISTRY

#: Steps of an episode.
LENGTH = 200
SHAPES = {"cartpole": ((4,), np.float32), "atari": ((4, 84, 84), np.uint8)}


@ENV_REGISTRY.register("feed")
class FeedEnv(BaseEnv):
    """Gives observations that it has made before."""

    def __init__(self, cfg: dict) -> None:
        shape, dtype = SHAPES[cfg["kind"]]
        rng = np.random.default_rng(0)
        self._obs = list((rng.random((16, *shape)) * 255).astype(dtype))
        self._reward = np.ones(1, np.float32)
        self.observation_space = spaces.Box(0, 255, shape, dtype)
        self.action_space = spaces.Discrete(2)
        self.reward_space = spaces.Box(0, 1, (1,), np.float32)
        self._t = 0

    def seed(self, seed: int, dynamic_seed: bool = True) -> None:
        """Nothing is random."""

    def reset(self) -> np.ndarray:
        self._t = 0
        return self._obs[0]

    def step(self, action: Any) -> BaseEnvTimestep:
        self._t += 1
        done = self._t >= LENGTH
        info = {"eval_episode_return": float(LENGTH)} if done else {}
        return BaseEnvTimestep(self._obs[self._t % 16], self._reward, done, info)

    def close(self) -> None:
        """Nothing is open."""

    def __repr__(self) -> str:
        return "FeedEnv()"


@POLICY_REGISTRY.register("feed")
class FeedPolicy(CommandModePolicy):
    """Always acts the same; learning is counting; its weights hold the time of the request.

    Config keys:
        learn.seconds: How long an update takes.
    """

    config = dict(
        type="feed",
        priority=False,
        priority_IS_weight=False,
        nstep=1,
        discount_factor=0.99,
        learn=dict(batch_size=256, seconds=0.0),
        collect=dict(n_sample=64, unroll_len=1),
        other=dict(replay_buffer=dict(replay_buffer_size=20000)),
    )

    def _create_model(self, cfg: Any, model: Any) -> torch.nn.Module:
        return torch.nn.Linear(256, 256)

    def _init_learn(self) -> None:
        self._rows = self._bytes = 0
        self._noted = 0.0

    def _forward_learn(self, data: Any) -> dict[str, Any]:
        if self._cfg.learn.seconds:
            time.sleep(self._cfg.learn.seconds)
        self._rows += len(data)
        self._bytes += data.columns["obs"].nbytes + data.columns["next_obs"].nbytes
        now = time.monotonic()
        if now - self._noted > 0.5:
            self._noted = now
            _note({"time": now, "rows": self._rows, "bytes": self._bytes})
        return {"total_loss": 0.0, "cur_lr": 0.0}

    def _state_dict_learn(self) -> dict[str, Any]:
        weights = self._model.state_dict()
        return {
            "model": {**weights, "asked": torch.tensor([time.monotonic()], dtype=torch.float64)}
        }

    def _load_state_dict_collect(self, state_dict: dict[str, Any]) -> None:
        age = time.monotonic() - float(state_dict["model"]["asked"])
        _note({"time": time.monotonic(), "age": age})

    _load_state_dict_eval = _load_state_dict_learn = _load_state_dict_collect

    def _model_input(self, obs: Any) -> Any:
        return obs

    def _forward_collect_batch(self, obs: Any, **kwargs: Any) -> dict[str, torch.Tensor]:
        return {"action": torch.zeros(len(obs), dtype=torch.int64)}

    _forward_eval_batch = _forward_collect_batch


POLICY_REGISTRY.register("feed_command")(FeedPolicy)


def _note(facts: dict[str, Any]) -> None:
    with open(os.environ["FEED_LOG"], "a") as file:
        file.write(json.dumps(facts) + "\n")


def configs(case: Any, update_seconds: float) -> tuple:
    """Main, create and system config of a run that continues until it is stopped."""
    main = dict(
        exp_name="run",
        env=dict(
            kind=case.kind,
            collector_env_num=8,
            evaluator_env_num=1,
            n_evaluator_episode=1,
            stop_value=1e9,
        ),
        policy=dict(
            cuda=False,
            learn=dict(
                batch_size=case.batch,
                seconds=case.seconds,
                learner=dict(learner_num=1, send_policy_freq=case.send_policy_freq),
            ),
            collect=dict(
                n_sample=64, collector=dict(collector_num=2, update_policy_second=update_seconds)
            ),
            other=dict(
                replay_buffer=dict(
                    type="advanced", replay_buffer_size=case.capacity, max_use=1, deepcopy=False
                ),
                commander=dict(
                    collector_task_space=2,
                    learner_task_space=1,
                    eval_interval=100000,
                    eval_share=0.0,
                ),
            ),
        ),
    )
    create = dict(
        env=dict(type="feed", import_names=["_feed"]),
        env_manager=dict(type="base"),
        policy=dict(type="feed_command", import_names=["_feed"]),
        learner=dict(type="base"),
        collector=dict(type="zergling"),
        commander=dict(type="solo"),
        comm_learner=dict(type="flask_fs"),
        comm_collector=dict(type="flask_fs"),
    )
    system = dict(
        # What the path carries is measured, not what a policy would wait for.
        coordinator=dict(samples_per_insert=None),
        path_data="./run/data",
        path_policy="./run/policy",
        communication_mode="auto",
        learner_gpu_num=0,
    )
    return main, create, system
